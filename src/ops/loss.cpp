#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/norms.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

// Bools are refused, as by the operator.
Value difference(Value x, Value y) { return call("aten::sub.Tensor", {x, y}); }

Value reduced(Value loss, int64_t reduction) {
  BRASA_CHECK(reduction >= kNone && reduction <= kSum, reduction, " is not a valid value for reduction");
  if (reduction == kNone) return loss;
  std::vector<int64_t> all = reduced_dims(std::nullopt, rank_of(loss));
  BRASA_CHECK(
      reduction != kMean || !is_integral(dtype_of(loss), true),
      "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ",
      name(dtype_of(loss)));
  return reduction == kMean ? mean(loss, all) : sum(loss, all);
}

// The cotangent of each element's loss from that of the reduced one.
Value spread(Value ct, Value loss_shaped, int64_t reduction) {
  if (reduction == kMean)
    return ct / count(loss_shaped, reduced_dims(std::nullopt, rank_of(loss_shaped)), dtype_of(ct));
  return ct;
}

Value relu(Value x) { return where(lt(x, 0), zeros_like(x), x); }

void add_regression(Table& t) {
  t.op("aten::mse_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .out(Out::Cast)
      .doc("(self - target)², reduced by mean (1), sum (2) or not (0).")
      .autocast(Autocast::Float32)
      .packed({{floats(8, 8), floats(8, 8)}})
      .composed_in_opmath(
          [](Value x, Value y, int64_t reduction) { return reduced(square(real_only("mse_loss", x - y)), reduction); })
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3, 5), floats(5), 0}, {floats(4), floats(4), 2}});
  t.op("aten::l1_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .doc("|self - target|, reduced.")
      .autocast(Autocast::Float32)
      .packed({{floats(8, 8), floats(8, 8)}})
      .composed_in_opmath([](Value x, Value y, int64_t reduction) { return reduced(abs(difference(x, y)), reduction); })
      .samples({{floats(3, 5), floats(3, 5)}, {floats(4), floats(4), 2}});
  t.op("aten::smooth_l1_loss(Tensor self, Tensor target, int reduction=1, float beta=1.0) -> Tensor")
      .out(Out::Cast)
      .doc("d²/(2 beta) where d = |self - target| < beta, else d - beta/2, reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, int64_t reduction, Number beta) {
        Value d = abs(real_only("smooth_l1_loss", x - y));
        if (beta.is(0)) return reduced(d, reduction);
        // Derivatives of the side that is not taken are 0, where d is infinite too.
        Value near = lt(d, beta), c = where(near, d, zeros_like(d));
        return reduced(where(near, 0.5 * c * c / beta, d - 0.5 * beta), reduction);
      })
      .precondition([](Value, Value, int64_t, double beta) {
        BRASA_CHECK(beta >= 0, "smooth_l1_loss does not support negative values for beta, got ", beta);
      })
      .special("beta", {0})
      .samples({{floats(3, 5), floats(3, 5)}, {floats(4), floats(4), 0, 0.5}});
  t.op("aten::huber_loss(Tensor self, Tensor target, int reduction=1, float delta=1.0) -> Tensor")
      .out(Out::Cast)
      .doc("d²/2 where d = |self - target| <= delta, else delta (d - delta/2), reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, int64_t reduction, Number delta) {
        Value d = abs(floating_only("huber_loss", x - y));
        // Derivatives of the side that is not taken are 0, where d or delta is infinite too.
        Value near = le(d, delta), none = zeros_like(d);
        Value c = where(near, d, none), slope = where(near, none, constant_like(d, delta));
        return reduced(where(near, 0.5 * c * c, slope * (d - 0.5 * slope)), reduction);
      })
      .precondition([](Value, Value, int64_t, double delta) {
        BRASA_CHECK(delta > 0, "huber_loss does not support non-positive values for delta, got ", delta);
      })
      .samples({{floats(3, 5), floats(3, 5)}, {floats(4), floats(4), 0, 0.5}});
}

void add_regression_backward(Table& t) {
  t.op("aten::mse_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
      .doc("The derivative of mse_loss.")
      .composed_in_opmath([](Value ct, Value x, Value y, int64_t reduction) {
        Value d = x - y;
        return spread(ct, d, reduction) * (2 * d);
      })
      .samples({{floats(), floats(3, 5), floats(3, 5), 1}});
  t.op("aten::smooth_l1_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float beta) -> Tensor")
      .doc("The derivative of smooth_l1_loss.")
      .composed_in_opmath([](Value ct, Value x, Value y, int64_t reduction, Number beta) {
        Value d = x - y, g = spread(ct, d, reduction);
        if (beta.is(0)) return g * prim::unary("sign", d);
        return where(le(d, -beta), -g, where(ge(d, beta), g, g * d / beta));
      })
      .special("beta", {0})
      .samples({{floats(), floats(3, 5), floats(3, 5), 1, 0.5}});
  t.op("aten::huber_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction, float delta) -> Tensor")
      .doc("The derivative of huber_loss.")
      .composed_in_opmath([](Value ct, Value x, Value y, int64_t reduction, Number delta) {
        Value d = x - y, g = spread(ct, d, reduction);
        return where(le(abs(d), delta), g * d, g * (delta * prim::unary("sign", d)));
      })
      .one_dtype({"grad_output", "self", "target"})
      .samples({{floats(), floats(3, 5), floats(3, 5), 1, 0.5}});
  t.op("aten::soft_margin_loss_backward(Tensor grad_output, Tensor self, Tensor target, int reduction) -> Tensor")
      .doc("The derivative of soft_margin_loss.")
      .composed_in_opmath([](Value ct, Value x, Value y, int64_t reduction) {
        return spread(ct, x, reduction) * (-y * sigmoid(-(y * x)));
      })
      .samples({{floats(), floats(3, 5), floats(3, 5), 1}});
}

Value at_least(Value x, double low) { return where(lt(x, low), constant_like(x, low), x); }

// y in x's shape if the two differ only by dimensions of size 1.
Value without_ones_as(Value x, Value y) {
  auto without_ones = [](Value v) {
    for (int64_t d = rank_of(v); d-- > 0;)
      if (same_size(size_of(v, d), 1)) v = squeeze(v, d);
    return v;
  };
  Shape a = shape_of(without_ones(x)), b = shape_of(without_ones(y));
  bool same = a.size() == b.size();
  for (size_t d = 0; same && d < a.size(); ++d) same = same_size(a[d], b[d]);
  return same ? prim::reshape(y, shape_of(x)) : y;
}

void check_binary(const char* op, Value x, Value y) {
  BRASA_CHECK(rank_of(x) == rank_of(y), op, ": using a target size ", shape_of(y),
              " that is different to the input size ", shape_of(x), " is not supported");
  check_same_shape(op, x, y);
}

// The weight may be narrower than what it weights, and not wider.
Value weighted(const char* op, Value loss, Value weight) {
  Value out = loss * weight;
  check_same_shape(op, loss, out);
  return out;
}

void add_binary(Table& t) {
  t.op("aten::binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor")
      .doc("-(y max(log p, -100) + (1 - y) max(log(1 - p), -100)), weighted and reduced.")
      .autocast(Autocast::Float32, Autocast::Refused)
      .composed_in_opmath([](Value p, Value y, Value w, int64_t reduction) {
        floating_only("binary_cross_entropy", p);
        if (rank_of(p) != rank_of(y)) y = without_ones_as(p, y);
        check_binary("binary_cross_entropy", p, y);
        for (const auto& [what, v] : {std::pair("input", p), std::pair("target", y)}) {
          Value low = ge(v, 0), high = le(v, 1);
          check_values(logical_and(low, high), str("all elements of ", what, " should be between 0 and 1"));
        }
        Value loss = (y - 1) * at_least(log1p(-p), -100) - y * at_least(log(p), -100);
        return reduced(w ? weighted("binary_cross_entropy", loss, w) : loss, reduction);
      })
      .vjp(own_derivative([](const Saved& s) {
        Value p = s.in(0), y = s.in(1), w = s.in(2);
        Shape target = shape_of(y);
        if (rank_of(p) != rank_of(y)) y = without_ones_as(p, y);
        Value g = spread(s.ct(), p, s.arg<int64_t>(3)), dw;
        if (w) {
          dw = g * ((y - 1) * at_least(log1p(-p), -100) - y * at_least(log(p), -100));
          g = g * w;
        }
        Value dp = g * (p - y) / at_least((1 - p) * p, 1e-12);
        return std::vector{dp, prim::reshape(g * (at_least(log1p(-p), -100) - at_least(log(p), -100)), target), dw};
      }))
      .one_dtype({"self", "target", "weight"})
      .samples({{floats(3, 5).in(0.1, 0.9), floats(3, 5).in(0, 1)},
                {floats(4).in(0.1, 0.9), floats(4).in(0, 1), floats(4), 0}});
  t.op("aten::binary_cross_entropy_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight=None, int reduction=1) -> Tensor")
      .doc("The derivative of binary_cross_entropy.")
      .composed_in_opmath([](Value ct, Value p, Value y, Value w, int64_t reduction) {
        Value g = spread(ct, p, reduction) * (p - y) / at_least((1 - p) * p, 1e-12);
        return w ? weighted("binary_cross_entropy_backward", g, w) : g;
      })
      .one_dtype({"grad_output", "self", "target"})
      .samples({{floats(), floats(3, 5).in(0.1, 0.9), floats(3, 5).in(0, 1)}});
  t.op("aten::binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, int reduction=1) -> Tensor")
      .doc("(1 - y) x - (1 + (pos_weight - 1) y) log sigmoid(x), weighted and reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, Value w, Value positive, int64_t reduction) {
        check_binary("binary_cross_entropy_with_logits", x, y);
        Value log_sigmoid = call("aten::log_sigmoid", {x});
        Value loss = (1 - y) * x - (positive ? (1 + (positive - 1) * y) * log_sigmoid : log_sigmoid);
        return reduced(w ? loss * w : loss, reduction);
      })
      .samples({{floats(3, 5), floats(3, 5).in(0, 1)}, {floats(3, 5), floats(3, 5).in(0, 1), floats(5), floats(5), 2}});
}

Value kl_divergence(Value x, Value y, bool log_target) {
  return log_target ? exp(y) * (y - x) : call("aten::xlogy.Tensor", {y, y}) - y * x;
}

void add_probability(Table& t) {
  t.op("aten::kl_div(Tensor self, Tensor target, int reduction=1, *, bool log_target=False) -> Tensor")
      .doc("y (log y - x), or exp(y) (y - x) with log_target, reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, int64_t reduction, bool log_target) {
        return reduced(kl_divergence(floating_only("kl_div", x), floating_only("kl_div", y), log_target), reduction);
      })
      .samples({{floats(3, 5), floats(3, 5).in(0.1, 1)}, {floats(4), floats(4), 0, true}});
  t.op("aten::poisson_nll_loss(Tensor input, Tensor target, bool log_input, bool full, float eps, int reduction) -> Tensor")
      .doc("exp(x) - y x, or x - y log(x + eps), with Stirling's term for full, reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, bool log_input, bool full, Number eps, int64_t reduction) {
        Value loss = log_input ? exp(x) - y * x : x - y * log(x + eps);
        if (full) {
          Value stirling = y * log(y) - y + 0.5 * log(6.283185307179586 * y);
          loss = loss + where(gt(y, 1), stirling, zeros_like(stirling));
        }
        return reduced(loss, reduction);
      })
      .samples({{floats(3, 5), floats(3, 5).in(0, 4), true, true, 1e-8, 1},
                {floats(4).in(0.1, 2), floats(4), false, false, 1e-8, 2}});
}

void add_margins(Table& t) {
  t.op("aten::soft_margin_loss(Tensor self, Tensor target, int reduction=1) -> Tensor")
      .doc("log(1 + exp(-y x)), reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, int64_t reduction) {
        Value z = y * x;
        check_same_shape("soft_margin_loss", x, z);
        return reduced(-call("aten::log_sigmoid", {z}), reduction);
      })
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::hinge_embedding_loss(Tensor self, Tensor target, float margin=1.0, int reduction=1) -> Tensor")
      .doc("x where y = 1, max(0, margin - x) where y = -1, reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value x, Value y, Number margin, int64_t reduction) {
        BRASA_CHECK(dtype_of(x) != DType::Bool,
                    "hinge_embedding_loss: Subtraction, the `-` operator, with a bool tensor is not supported");
        Value far = where(eq(y, 1), zeros_like(x), relu(margin - x)), near = where(eq(y, -1), zeros_like(x), x);
        return reduced(far + near, reduction);
      })
      .samples({{floats(3, 5), floats(3, 5)}});
  t.op("aten::margin_ranking_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor")
      .doc("max(0, margin - y (x1 - x2)), reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value a, Value b, Value y, Number margin, int64_t reduction) {
        return reduced(relu(-y * difference(a, b) + margin), reduction);
      })
      .samples({{floats(5), floats(5), floats(5), 0.5}});
  t.op("aten::cosine_embedding_loss(Tensor input1, Tensor input2, Tensor target, float margin=0.0, int reduction=1) -> Tensor")
      .doc("1 - cos where y = 1, max(0, cos - margin) where y = -1, reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value a, Value b, Value y, Number margin, int64_t reduction) {
        BRASA_CHECK(rank_of(y) <= 1 && rank_of(a) == rank_of(y) + 1 && rank_of(b) == rank_of(y) + 1,
                    "cosine_embedding_loss: expected a target of at most 1 dimension and inputs of one more, got ",
                    type_of(a), ", ", type_of(b), " and ", type_of(y));
        constexpr double kEpsilon = 1e-12;  // PyTorch's, which keeps zero vectors finite
        std::vector<int64_t> last = {rank_of(y)};
        a = to_float(a);
        b = to_float(b);
        Value dot = sum(a * b, last), aa = sum(a * a, last) + kEpsilon, bb = sum(b * b, last) + kEpsilon;
        Value cosine = dot / sqrt(aa * bb);
        Value alike = where(eq(y, 1), 1 - cosine, zeros_like(cosine)),
              apart = where(eq(y, -1), relu(cosine - margin), zeros_like(cosine));
        return reduced(alike + apart, reduction);
      })
      .samples({{floats(3, 5), floats(3, 5), ints(3)}});
  t.op("aten::pairwise_distance(Tensor x1, Tensor x2, float p=2, float eps=1e-06, bool keepdim=False) -> Tensor")
      .doc("The p-norm of x1 - x2 + eps along the last dimension.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath([](Value a, Value b, Number p, Number eps, bool keep) {
        Value d = difference(a, b) + eps;
        return call("aten::norm.ScalarOpt_dim", {d, p.arg(), int_arg({-1}), keep});
      })
      .special("p", kNormOrders)
      .samples({{floats(3, 5), floats(3, 5)}, {floats(3, 5), floats(5), 1.0}, {floats(3, 5), floats(5), 3.5}});
  t.op("aten::triplet_margin_loss(Tensor anchor, Tensor positive, Tensor negative, float margin=1.0, float p=2.0, float eps=1e-06, bool swap=False, int reduction=1) -> Tensor")
      .doc("max(0, margin + |anchor - positive| - |anchor - negative|), reduced.")
      .autocast(Autocast::Float32)
      .composed_in_opmath([](Value anchor, Value positive, Value negative, Number margin, Number p, Number eps,
                             bool swap, int64_t reduction) {
        BRASA_CHECK(
            rank_of(anchor) == rank_of(positive) && rank_of(anchor) == rank_of(negative),
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: anchor ",
            rank_of(anchor), "D, positive ", rank_of(positive), "D, and negative ", rank_of(negative), "D inputs");
        auto distance = [&](Value a, Value b) { return call("aten::pairwise_distance", {a, b, p.arg(), eps}); };
        Value near = distance(anchor, positive), far = distance(anchor, negative);
        if (swap) far = minimum(far, distance(positive, negative));
        return reduced(relu(margin + near - far), reduction);
      })
      .special("p", kNormOrders)
      .samples({{floats(3, 5), floats(3, 5), floats(3, 5)},
                {floats(3, 5), floats(3, 5), floats(3, 5), 0.5, 1.0, 1e-6, true, 0}});
}

}  // namespace

void add_loss(Table& t) {
  add_regression(t);
  add_regression_backward(t);
  add_binary(t);
  add_probability(t);
  add_margins(t);
}

}  // namespace brasa::ops
