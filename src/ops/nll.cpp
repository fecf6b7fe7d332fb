#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Negative log likelihood and cross entropy. Classes lie along dimension 1, or 0 of a single row of scores.
namespace brasa::ops {
namespace {

enum Reduction : int64_t { kNone, kMean, kSum };

int64_t class_dim(Value scores) { return rank_of(scores) == 1 ? 0 : 1; }

Shape without(const Shape& shape, int64_t dim) {
  Shape out = shape;
  out.erase(out.begin() + dim);
  return out;
}

// The target in the shape of x without its classes: that of a single sample may have one dimension.
Value checked_target(Value x, Value target, Value weight) {
  floating_only("nll_loss", x);
  BRASA_CHECK(!weight || dtype_of(weight) == dtype_of(x), "nll_loss: expected weight of scalar type ",
              name(dtype_of(x)), " but found ", weight ? name(dtype_of(weight)) : "");
  BRASA_CHECK(rank_of(x) >= 1, "nll_loss: expected input of at least 1 dimension, got ", type_of(x));
  BRASA_CHECK(dtype_of(target) == DType::Int64 || (dtype_of(target) == DType::UInt8 && rank_of(x) <= 2),
              "expected scalar type Long but found ", name(dtype_of(target)),
              ": class targets are int64 or uint8 (that of an image: int64)");
  if (rank_of(x) == 1 && rank_of(target) == 1) {
    BRASA_CHECK(same_size(size_of(target, 0), 1),
                "For 1D input, 1D target must have size 1, but got target size: ", size_of(target, 0));
    target = squeeze(target, 0);
  }
  Shape want = without(shape_of(x), class_dim(x));
  bool same = rank_of(target) == static_cast<int64_t>(want.size());
  if (same && !want.empty())
    if (!same_size(size_of(target, 0), want[0]))
      throw ValueError(
          str("Expected input batch_size (", want[0], ") to match target batch_size (", size_of(target, 0), ")."));
  for (size_t d = 1; same && d < want.size(); ++d) same = same_size(size_of(target, static_cast<int64_t>(d)), want[d]);
  BRASA_CHECK(same, "nll_loss: expected a target of shape ", want, " for input ", type_of(x), ", got ",
              type_of(target));
  BRASA_CHECK(!weight || (rank_of(weight) == 1 && same_size(size_of(weight, 0), size_of(x, class_dim(x)))),
              "weight tensor should be defined either for all ", size_of(x, class_dim(x)),
              " classes or no classes but got weight tensor of shape: ", weight ? shape_of(weight) : Shape{});
  return target;
}

// weight [C] along the class dimension of x.
Value along_classes(Value weight, Value x) {
  Shape shape(rank_of(x), Expr(1));
  shape[class_dim(x)] = size_of(x, class_dim(x));
  return broadcast_to(prim::reshape(weight, shape), shape_of(x));
}

// Is this the class of the target? Nowhere for ignored targets, which become a class that there is not: that is asked once for a sample.
Value is_target(Value x, Value target, Expr ignore) {
  int64_t dim = class_dim(x);
  Value t = convert(target, DType::Int64);
  Value valid = ne(t, full(Number(Arg(ignore)), shape_of(t), DType::Int64));
  Value wide = keep_dims(where(valid, t, full(-1, shape_of(t), DType::Int64)), shape_of(x), {dim});
  return eq(prim::iota(shape_of(x), dim, DType::Int64), wide);
}

std::vector<int64_t> all_dims(Value x) { return reduced_dims(std::nullopt, rank_of(x)); }

void check_classes(Value x, Value target, Value valid, Expr ignore) {
  Expr classes = size_of(x, class_dim(x));
  Value limit = size_tensor(classes, shape_of(target)), low = ge(target, 0), high = lt(target, limit);
  Value inside = logical_and(low, high), ignored = logical_not(valid);
  check_values(logical_or(ignored, inside),
               str("Target is out of bounds: expected class indices in [0, ", classes, ") or ignore_index ", ignore));
}

// The class index, 0 for ignored targets, and the weight of each target, 0 for ignored ones.
struct Targets {
  Value index, valid, weight;
};
Targets read_targets(Value x, Value target, Value weight, Expr ignore) {
  Value t = convert(target, DType::Int64);
  Targets out;
  out.valid = ne(t, full(Number(Arg(ignore)), shape_of(t), DType::Int64));
  check_classes(x, t, out.valid, ignore);
  Value safe = where(out.valid, t, zeros_like(t));
  out.index = safe;
  Value one = full(1, shape_of(t), dtype_of(x));
  out.weight =
      where(out.valid, weight ? convert(prim::gather(weight, {safe}, {0}), dtype_of(x)) : one, zeros_like(one));
  return out;
}

Value pick(Value x, int64_t dim, Value index) {
  std::vector<Value> indices;
  std::vector<int64_t> dims;
  int64_t k = 0;
  for (int64_t d = 0; d < rank_of(x); ++d) {
    indices.push_back(d == dim ? index : prim::iota(shape_of(index), k++, DType::Int64));
    dims.push_back(d);
  }
  return prim::gather(x, indices, dims);
}

std::array<Value, 2> nll(Value x, Value target, Value weight, int64_t reduction, Expr ignore) {
  target = checked_target(x, target, weight);
  // The elements of an image are one dimension of a sum.
  if (rank_of(x) > 3 && reduction != kNone) {
    x = merge_dims(x, 2, rank_of(x) - 1);
    target = merge_dims(target, 1, rank_of(target) - 1);
  }
  Targets t = read_targets(x, target, weight, ignore);
  Value picked = pick(x, class_dim(x), t.index);
  Value loss = where(t.valid, -(picked * t.weight), zeros_like(picked));
  if (reduction == kNone) return {loss, rank_of(x) == 1 ? t.weight : full(0, {}, dtype_of(x))};
  Value total = sum(t.weight, all_dims(t.weight)), all = sum(loss, all_dims(loss));
  return {reduction == kMean ? all / total : all, total};
}

Value nll_pullback(Value ct, Value x, Value target, Value weight, int64_t reduction, Expr ignore, Value total) {
  Value g = reduction == kMean ? ct / total : ct;
  if (reduction == kNone) g = keep_dims(g, shape_of(x), {class_dim(x)});
  Value each = weight ? -(along_classes(weight, x) * g) : broadcast_to(-g, shape_of(x));
  return where(is_target(x, target, ignore), each, zeros_like(each));
}

// d/dweight[c] sums -x - loss (mean) or -x over the targets of class c.
Value weight_pullback(Value ct, Value total_ct, Value x, Value target, int64_t reduction, Expr ignore, Value loss,
                      Value total) {
  int64_t dim = class_dim(x);
  Value each = zeros_like(x);
  if (ct && reduction == kNone) each = -x * keep_dims(ct, shape_of(x), {dim});
  if (ct && reduction == kSum) each = -x * ct;
  if (ct && reduction == kMean) each = -(x + loss) * (ct / total);
  if (total_ct && (reduction != kNone || rank_of(x) == 1)) each = each + total_ct;
  std::vector<int64_t> others;
  for (int64_t d = 0; d < rank_of(x); ++d)
    if (d != dim) others.push_back(d);
  return sum(where(is_target(x, target, ignore), each, zeros_like(each)), others);
}

std::vector<Value> nll_derivative(const Saved& s) {
  Value x = s.in(0), target = s.in(1), weight = s.in(2), dx, dw;
  auto reduction = s.arg<int64_t>(3);
  auto ignore = s.arg<Expr>(4);
  if (s.ct()) dx = nll_pullback(s.ct(), x, target, weight, reduction, ignore, s.out(1));
  if (weight) dw = weight_pullback(s.ct(0), s.ct(1), x, target, reduction, ignore, s.out(0), s.out(1));
  return {dx, Value{}, dw};
}

// nll_loss_backward is linear in the gradient of the loss, by what nll_loss makes of `ct` in place of the scores.
std::vector<Value> nll_backward_derivative(const Saved& s) {
  Value ct = s.ct(), g = s.in(0), target = s.in(2), weight = s.in(3), total = s.in(6), dw, dtotal;
  auto reduction = s.arg<int64_t>(4);
  bool mean = reduction == kMean;
  if (mean) reduction = kSum;  // and divided by the total afterwards
  auto ignore = s.arg<Expr>(5);
  Value dg = nll(ct, target, weight, reduction, ignore)[0];
  if (weight) dw = weight_pullback(g, {}, ct, target, reduction, ignore, {}, {});
  if (mean) {
    dg = dg / total;
    dtotal = -(dg * g) / total;
    if (weight) dw = dw / total;
  }
  return {dg, zeros_like(ct), Value{}, dw, Value{}, Value{}, dtotal};
}

Value nll_loss(Value x, Value target, Value weight, int64_t reduction, Expr ignore) {
  return call_all("aten::nll_loss_forward", {x, target, weight ? Arg(weight) : Arg(), reduction, ignore})[0];
}

void add_forms(Table& t) {
  for (const char* name : {"nll_loss_forward", "nll_loss2d_forward"})
    t
        .op(str(
            "aten::", name,
            "(Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index) -> (Tensor output, Tensor total_weight)"))
        .doc(
            "-weight[target] self[target], reduced by weighted mean (1), sum (2) or not (0), and the sum of the weights.")
        .composed_in_opmath([](Value x, Value target, Value w, int64_t reduction, Expr ignore) {
          return nll(x, target, w, reduction, ignore);
        })
        .vjp(own_derivative(nll_derivative))
        .samples({{floats(3, 2), ints(3), ir::Arg(), 1, -100}, {floats(3, 2, 4, 1), ints(3, 4, 1), floats(2), 0, 1}});
  for (const char* name : {"nll_loss", "nll_loss2d", "nll_loss_nd"})
    t.op(str("aten::", name,
             "(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100) -> Tensor"))
        .doc("-weight[target] self[target], reduced by weighted mean (1), sum (2) or not (0).")
        .autocast(Autocast::Float32)
        .composed([](Value x, Value target, Value w, int64_t reduction, Expr ignore) {
          return nll_loss(x, target, w, reduction, ignore);
        })
        .samples({{floats(3, 2), ints(3)}, {floats(3, 2, 4), ints(3, 4), floats(2), 2, 0}});
  for (const char* name : {"nll_loss_backward", "nll_loss2d_backward"})
    t
        .op(str(
            "aten::", name,
            "(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, SymInt ignore_index, Tensor total_weight) -> Tensor"))
        .doc("The derivative of nll_loss.")
        .composed_in_opmath([](Value ct, Value x, Value target, Value w, int64_t reduction, Expr ignore, Value total) {
          target = checked_target(x, target, w);
          BRASA_CHECK(same_size(type_of(total).numel(), 1),
                      "nll_loss_backward: expected total_weight of one element, got ", type_of(total));
          Value t = convert(target, DType::Int64);
          check_classes(x, t, ne(t, size_tensor(ignore, shape_of(t))), ignore);
          return nll_pullback(ct, x, target, w, reduction, ignore, total);
        })
        .vjp(own_derivative(nll_backward_derivative))
        .one_dtype({"grad_output", "self", "weight", "total_weight"})
        .samples({{floats(), floats(3, 2), ints(3), ir::Arg(), 1, -100, floats().in(1, 2)},
                  {floats(3), floats(3, 2), ints(3), floats(2), 0, 1, floats().in(1, 2)}});
}

Value with_probabilities(Value scores, Value target, Value weight, int64_t reduction, const Number& smoothing) {
  int64_t dim = class_dim(scores);
  check_same_shape("cross_entropy_loss", scores, target);
  BRASA_CHECK(is_floating(dtype_of(target)), "Expected floating point type for target with class probabilities, got ",
              name(dtype_of(target)));
  Value log_p = call("aten::_log_softmax", {scores, dim, false});
  Value classes = count(scores, {dim}, dtype_of(scores)), y = target;
  if (!smoothing.is(0)) y = y * (1 - smoothing) + smoothing / classes;
  Value product = log_p * y;
  if (weight) product = product * along_classes(weight, scores);
  Value loss = -sum(product, {dim});
  if (reduction == kNone) return loss;
  Value all = sum(loss, all_dims(loss));
  return reduction == kSum ? all : all / count(loss, all_dims(loss), dtype_of(loss));
}

Value with_smoothing(Value log_p, Value target, Value weight, int64_t reduction, Expr ignore, const Number& smoothing) {
  int64_t dim = class_dim(log_p);
  Value nll = nll_loss(log_p, target, weight, reduction, ignore);
  Targets t = read_targets(log_p, target, weight, ignore);
  Value smooth = -sum(weight ? log_p * along_classes(weight, log_p) : log_p, {dim});
  smooth = where(t.valid, smooth, zeros_like(smooth));
  if (reduction != kNone) smooth = sum(smooth, all_dims(smooth));
  if (reduction == kMean) smooth = smooth / sum(t.weight, all_dims(t.weight));
  return nll * (1 - smoothing) + smooth * (smoothing / count(log_p, {dim}, dtype_of(log_p)));
}

}  // namespace

void add_nll(Table& t) {
  add_forms(t);
  t.op("aten::cross_entropy_loss(Tensor self, Tensor target, Tensor? weight=None, int reduction=1, SymInt ignore_index=-100, float label_smoothing=0.0) -> Tensor")
      .doc("nll_loss of log_softmax(self); the target holds classes, or the probability of each.")
      .autocast(Autocast::Float32)
      .backward_node("NllLossBackward0")
      .packed({{floats(8, 8), ints(8)}})
      .composed_in_opmath([](Value x, Value target, Value w, int64_t reduction, Expr ignore, Number smoothing) {
        BRASA_CHECK(reduction >= kNone && reduction <= kSum,
                    "Invalid reduction type encountered in cross_entropy: ", reduction);
        BRASA_CHECK(rank_of(x) >= 1, "cross_entropy_loss: expected input of at least 1 dimension, got ", type_of(x));
        bool probabilities = rank_of(x) == rank_of(target);
        if (probabilities) return with_probabilities(x, target, w, reduction, smoothing);
        Value log_p = call("aten::_log_softmax", {x, class_dim(x), false});
        if (!smoothing.is(0)) return with_smoothing(log_p, target, w, reduction, ignore, smoothing);
        return nll_loss(log_p, target, w, reduction, ignore);
      })
      .precondition([](Value, Value, Value, int64_t, Expr, double smoothing) {
        BRASA_CHECK(smoothing >= 0 && smoothing <= 1, "label_smoothing must be between 0.0 and 1.0. Got: ", smoothing);
      })
      .one_dtype({"self", "weight"})
      .samples({{floats(3, 2), ints(3)},
                {floats(3, 2, 4), ints(3, 4), floats(2), 2, 0, 0.1},
                {floats(3, 5), floats(3, 5).in(0, 1), ir::Arg(), 1, -100, 0.2},
                {floats(4), ints()}});
}

}  // namespace brasa::ops
