#include <cmath>
#include <numbers>

#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

constexpr double kSeluAlpha = 1.6732632423543772848170429916717;
constexpr double kSeluScale = 1.0507009873554804934193349852946;

Value zero(Value x) { return zeros_like(x); }
Number whole(const Number& n) {
  if (n.is_value()) return convert(n.arg().get<Value>(), DType::Int64);
  return n.is_size() ? n : Number(truncated(n.as_double()));
}

// What PyTorch has no integers for.
Value only_floating(const char* op, Value x) {
  BRASA_CHECK(!is_integral(dtype_of(x), true), "\"", op, "\" not implemented for ", name(dtype_of(x)));
  return x;
}

// {rrelu, slopes}: drawn in training where x is not positive, else 1; otherwise `noise` as it was.
std::array<Value, 2> noisy_rrelu(Value x, Value noise, Number lower, Number upper, bool training, Value key) {
  floating_only("rrelu", x);
  if (noise) check_same_shape("rrelu_with_noise", x, noise);
  if (!training) return {where(ge(x, 0), x, x * ((lower + upper) / 2)), noise};
  Value drawn = uniform(key, shape_of(x), dtype_of(x)) * (upper - lower) + lower;
  Value slope = where(gt(x, 0), constant_like(x, 1), drawn);
  return {x * slope, slope};
}

// A product with an infinite x is made only where it is taken: its derivative by w is 0 elsewhere.
Value parametric(Value x, Value w) {
  Value positive = gt(x, 0);
  return where(positive, x, where(positive, zero(x), x) * w);
}

void add_rectified(Table& t) {
  t.op("aten::relu(Tensor self) -> Tensor")
      .doc("max(x, 0); its derivative at 0 is 0.")
      .sparse(Sparse::Each)
      .composed([](Value x) {
        BRASA_CHECK(dtype_of(x) != DType::Bool, "Boolean inputs not supported for relu");
        return where(le(x, 0), zero(x), x);
      })
      .samples({{floats(3, 5)}, {ints(4).in(-3, 3)}, {floats(0)}, {floats(7).strided(2)}});
  t.op("aten::relu6(Tensor self) -> Tensor")
      .doc("min(max(x, 0), 6).")
      .composed([](Value x) { return call("aten::hardtanh", {x, 0, 6}); })
      .samples({{floats(3, 5).in(-3, 9)}});
  t.op("aten::hardtanh(Tensor self, Scalar min_val=-1, Scalar max_val=1) -> Tensor")
      .doc("x limited to [min_val, max_val]; its derivative at the limits is 0.")
      .composed([](Value x, Number low, Number high) {
        BRASA_CHECK(dtype_of(real_only("hardtanh", x)) != DType::Bool, "Bool inputs not supported for hardtanh");
        if (is_integral(dtype_of(x))) return call("aten::clamp", {x, whole(low).arg(), whole(high).arg()});
        Value l = constant_like(x, low), h = constant_like(x, high);
        Value above = where(le(x, l), l, x);
        return where(ge(above, h), h, above);
      })
      .fits("min_val")
      .fits("max_val")
      .samples({{floats(3, 5)}, {floats(4), -0.5, 1.5}});
  t.op("aten::leaky_relu(Tensor self, Scalar negative_slope=0.01) -> Tensor")
      .doc("x where positive, else negative_slope * x.")
      .composed_in_opmath(
          [](Value x, Number slope) { return where(gt(only_floating("leaky_relu", x), 0), x, x * slope); })
      .samples({{floats(3, 5)}, {floats(4), 0.2}});
  t.op("aten::threshold(Tensor self, Scalar threshold, Scalar value) -> Tensor")
      .out(Out::Cast)
      .doc("x where above the threshold, else value.")
      .composed([](Value x, Number limit, Number value) {
        return where(le(x, constant_like(x, limit)), constant_like(x, value), x);
      })
      .fits("threshold")
      .fits("value")
      .samples({{floats(3, 5), 0.5, -1.0}, {ints(4).in(-3, 3), 1, 7}});
  t.op("aten::prelu(Tensor self, Tensor weight) -> Tensor")
      .doc("x where positive, else weight * x; one weight, or one for each channel (dimension 1).")
      .autocast(Autocast::Lower)
      .keeps_memory_format()
      .composed_in_opmath([](Value x, Value w) {
        floating_only("prelu", x);
        BRASA_CHECK(rank_of(w) <= 1,
                    "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = ", rank_of(w));
        if (rank_of(w) == 1 && !is_one(size_of(w, 0))) {
          BRASA_CHECK(rank_of(x) > 0, "Not allow zero-dim input tensor.");
          BRASA_CHECK(rank_of(x) > 1 && same_size(size_of(x, 1), size_of(w, 0)),
                      "Mismatch of parameter numbers and input channel size. Found parameter numbers = ", size_of(w, 0),
                      " and input ", type_of(x));
          Shape shape(rank_of(x) - 1, Expr(1));
          shape[0] = size_of(w, 0);
          w = prim::reshape(w, shape);
        } else if (rank_of(w) == 1 && rank_of(x) == 0) {
          w = prim::reshape(w, {});
        }
        return parametric(x, w);
      })
      .one_dtype({"self", "weight"})
      .samples({{floats(2, 3, 4), floats(3)}, {floats(5), floats(1)}});
  t.op("aten::_prelu_kernel(Tensor self, Tensor weight) -> Tensor")
      .doc("x where positive, else weight * x.")
      .keeps_memory_format()
      .composed_in_opmath(parametric)
      .one_dtype({"self", "weight"})
      .samples({{floats(2, 3, 4), floats(3, 1)}});
  const std::vector<Sample> noisy = {{floats(3, 5), floats(3, 5), 0.1, 0.3, false},
                                     {floats(3, 5), floats(3, 5), 0.1, 0.3, true}};
  t.op("aten::rrelu_with_noise(Tensor self, Tensor(b!) noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor")
      .doc("rrelu, which writes the slopes that training draws to noise.")
      .random()
      .composed_in_opmath(noisy_rrelu)
      .samples(noisy);
  t.op("aten::rrelu_with_noise_functional(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> (Tensor, Tensor noise_out)")
      .doc("rrelu, and the slopes that training drew (else noise).")
      .random()
      .composed_in_opmath(noisy_rrelu)
      .samples(noisy);
  t.op("aten::rrelu(Tensor self, Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None) -> Tensor")
      .doc("leaky_relu with a slope drawn from [lower, upper] for each element in training, else their mean.")
      .random()
      .composed_in_opmath([](Value x, Number lower, Number upper, bool training, Value key) {
        return noisy_rrelu(x, {}, lower, upper, training, key)[0];
      })
      .precondition([](Value, const Number& lower, const Number& upper, bool, Value) {
        BRASA_CHECK(lower.as_double() <= upper.as_double(),
                    "rrelu: Lower bound should be less than or equal to the upper bound, got ", lower.as_double(),
                    " and ", upper.as_double());
      })
      .samples({{floats(3, 5)}, {floats(3, 5), 0.1, 0.3, true}});
}

void add_shrinks(Table& t) {
  t.op("aten::hardshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
      .doc("0 where |x| <= lambd, else x.")
      .composed([](Value x, Number l) {
        return where(logical_and(ge(floating_only("hardshrink", x), -l), le(x, l)), zero(x), x);
      })
      .samples({{floats(3, 5)}, {floats(4), 1.0}});
  t.op("aten::softshrink(Tensor self, Scalar lambd=0.5) -> Tensor")
      .doc("x moved towards 0 by lambd; 0 where |x| <= lambd.")
      .composed_in_opmath([](Value x, Number l) {
        return where(gt(floating_only("softshrink", x), l), x - l,
                     where(lt(x, -l), x + l, where(is_nan(x), x, zero(x))));
      })
      .precondition([](Value, const Number& l) {
        BRASA_CHECK(l.as_double() >= 0, "lambda must be greater or equal to 0, but found to be ", l.as_double(), ".");
      })
      .samples({{floats(3, 5)}, {floats(4), 1.0}});
  t.op("aten::tanhshrink(Tensor self) -> Tensor")
      .doc("x - tanh(x).")
      .not_in_pytorch()
      .composed_in_opmath([](Value x) { return x - tanh(x); })
      .samples({{floats(3, 5)}});
  t.op("aten::hardsigmoid(Tensor self) -> Tensor")
      .doc("min(max(x + 3, 0), 6) / 6.")
      .composed_in_opmath([](Value x) {
        return where(le(floating_only("hardsigmoid", x), -3), zero(x),
                     where(ge(x, 3), constant_like(x, 1), (x + 3) / 6));
      })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{call("aten::hardsigmoid_backward", {s.ct(), s.in(0)})}; }))
      .samples({{floats(3, 5).in(-4, 4)}});
  t.op("aten::hardswish(Tensor self) -> Tensor")
      .doc("x * min(max(x + 3, 0), 6) / 6.")
      .composed_in_opmath([](Value x) {
        // A product with 0 where x <= -3: that of -inf is no number.
        return where(le(floating_only("hardswish", x), -3), x * 0, where(ge(x, 3), x, x * ((x + 3) / 6)));
      })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{call("aten::hardswish_backward", {s.ct(), s.in(0)})}; }))
      .samples({{floats(3, 5).in(-4, 4)}});
}

Value normal_cdf(Value x) { return 0.5 * (1 + erf(x * std::sqrt(0.5))); }

Value elu(Value x, const Number& alpha, const Number& scale, const Number& input_scale) {
  Value positive = gt(x, 0);
  Value below = (alpha * scale) * expm1(where(positive, zero(x), x) * input_scale);
  return where(positive, x * scale, below);
}

Value softplus(Value x, const Number& beta, const Number& threshold) {
  Value z = x * beta;
  Value linear = gt(z, threshold);
  return where(linear, x, log1p(exp(where(linear, zero(z), z))) / beta);
}

void add_smooth(Table& t) {
  t.op("aten::gelu(Tensor self, *, str approximate='none') -> Tensor")
      .doc("x·Φ(x); with approximate='tanh' the cubic approximation of Hendrycks & Gimpel 2016, eq. 2.")
      .composed_in_opmath([](Value x, std::string approximate) {
        BRASA_CHECK(approximate == "none" || approximate == "tanh",
                    "approximate argument must be either none or tanh, got '", approximate, "'");
        BRASA_CHECK(is_floating(dtype_of(x)), "gelu: expected a floating tensor, got ", type_of(x));
        if (approximate == "none") return x * normal_cdf(x);
        return 0.5 * x * (1 + tanh(std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * (x * x * x))));
      })
      .vjp(own_derivative([](const Saved& s) {
        return std::vector{call("aten::gelu_backward", {s.ct(), s.in(0), s.arg<std::string>(1)})};
      }))
      .samples({{floats(3, 5)}, {floats(7).strided(2), "tanh"}, {floats(0)}});
  t.op("aten::silu(Tensor self) -> Tensor")
      .doc("x * sigmoid(x).")
      .composed_in_opmath([](Value x) { return only_floating("silu", x) * sigmoid(x); })
      .vjp(own_derivative([](const Saved& s) { return std::vector{call("aten::silu_backward", {s.ct(), s.in(0)})}; }))
      .samples({{floats(3, 5)}, {floats(3).in(-200, 200)}});
  t.op("aten::elu(Tensor self, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor")
      .doc("scale * x where positive, else scale * alpha * (exp(input_scale * x) - 1).")
      .composed_in_opmath([](Value x, Number alpha, Number scale, Number input_scale) {
        return elu(floating_only("elu", x), alpha, scale, input_scale);
      })
      .samples({{floats(3, 5)}, {floats(4), 0.5, 2.0, 1.5}, {floats(2).in(90, 200)}});
  t.op("aten::selu(Tensor self) -> Tensor")
      .doc("The self-normalising elu of Klambauer et al. 2017.")
      .composed_in_opmath([](Value x) { return elu(floating_only("selu", x), kSeluAlpha, kSeluScale, 1); })
      .samples({{floats(3, 5)}});
  t.op("aten::celu(Tensor self, Scalar alpha=1.0) -> Tensor")
      .doc("x where positive, else alpha * (exp(x / alpha) - 1).")
      .composed_in_opmath([](Value x, Number alpha) {
        BRASA_CHECK(!alpha.is(0), "ZeroDivisionError: alpha cannot be 0 for CELU");
        return elu(floating_only("celu", x), alpha, 1, 1 / alpha);
      })
      .precondition([](Value, const Number& alpha) {
        BRASA_CHECK(!alpha.is(0), "ZeroDivisionError: alpha cannot be 0 for CELU");
      })
      .samples({{floats(3, 5)}, {floats(4), 0.5}});
  t.op("aten::softplus(Tensor self, Scalar beta=1, Scalar threshold=20) -> Tensor")
      .doc("log(1 + exp(beta * x)) / beta, and x where beta * x > threshold.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath([](Value x, Number beta, Number threshold) {
        return softplus(floating_only("softplus", x), beta, threshold);
      })
      .samples({{floats(3, 5)}, {floats(4), 2, 1}, {floats(2).in(90, 200)}});
  t.op("aten::mish(Tensor self) -> Tensor")
      .doc("x * tanh(softplus(x)).")
      .composed_in_opmath([](Value x) { return only_floating("mish", x) * tanh(softplus(x, 1, 20)); })
      .vjp(own_derivative([](const Saved& s) { return std::vector{call("aten::mish_backward", {s.ct(), s.in(0)})}; }))
      .samples({{floats(3, 5)}, {floats(2).in(90, 200)}});
  t.op("aten::log_sigmoid(Tensor self) -> Tensor")
      .doc("log(sigmoid(x)).")
      .composed_in_opmath(
          [](Value x) { return minimum(only_floating("log_sigmoid", x), zero(x)) - log1p(exp(-abs(x))); })
      .vjp(own_derivative([](const Saved& s) { return std::vector{s.ct() * sigmoid(-s.in(0))}; }))
      .samples({{floats(3, 5)}, {floats(2).in(-200, 200)}});
  t.op("aten::log_sigmoid_forward(Tensor self) -> (Tensor output, Tensor buffer)")
      .doc("log(sigmoid(x)), and exp(-|x|) for the derivative.")
      .composed_in_opmath([](Value x) { return std::array{call("aten::log_sigmoid", {x}), exp(-abs(x))}; })
      .samples({{floats(3, 5)}});
}

std::array<Value, 2> halves(Value x, int64_t dim, const char* op) {
  BRASA_CHECK(rank_of(x) > 0, op, " does not support 0-dimensional tensors");
  dim = wrap_dim(dim, rank_of(x));
  Expr size = size_of(x, dim), half = ir::floordiv(size, 2);
  BRASA_CHECK(same_size(half * 2, size), "Halving dimension must be even, but dimension ", dim, " is size ", size);
  return {narrow(x, dim, 0, half), narrow(x, dim, half, half)};
}

void add_gated(Table& t) {
  t.op("aten::glu(Tensor self, int dim=-1) -> Tensor")
      .out(Out::Cast)
      .doc("The first half along dim times the sigmoid of the second.")
      .keeps_memory_format()
      .composed_in_opmath([](Value x, int64_t dim) {
        auto [a, b] = halves(floating_only("glu", x), dim, "glu");
        return a * sigmoid(b);
      })
      .samples({{floats(3, 6)}, {floats(4, 3), 0}});
}

Value scaled_by_mask(Value x, Value mask, Number scale) { return x * convert(mask, dtype_of(x)) * scale; }
Value keep_mask(Value key, Value like, const Number& p) {
  return lt(uniform(key, shape_of(like), DType::Float32), 1 - p);
}

void check_probability(double p) {
  BRASA_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got ", p);
}

Value dropped(Value x, Value mask, const Number& p) {
  if (p.is(1)) return x * 0.0;
  return where(mask, x * (1 / (1 - p)), zero(x));
}

// Zeroed elements become α′, and the result is scaled and moved to keep mean and variance (Klambauer et al. 2017, §3).
Value alpha_dropped(Value x, Value mask, const Number& p) {
  constexpr double kAlpha = kSeluAlpha * kSeluScale;
  if (p.is(1)) return x * 0.0;
  Number variance = (kAlpha * kAlpha * p + 1) * (1 - p);
  Number a = variance.is_known() ? Number(1 / std::sqrt(variance.as_double())) : Number(rsqrt(to_value(variance)));
  return where(mask, x * a + kAlpha * a * p, constant_like(x, kAlpha * a * (p - 1)));
}

// One mask element for each of the first two dimensions.
Value feature_mask(Value key, Value x, const Number& p) {
  BRASA_CHECK(rank_of(x) >= 2, "Feature dropout requires at least 2 dimensions in the input, got ", type_of(x));
  Shape shape(rank_of(x), Expr(1));
  shape[0] = size_of(x, 0);
  shape[1] = size_of(x, 1);
  return broadcast_to(lt(uniform(key, shape, DType::Float32), 1 - p), shape_of(x));
}

void add_dropout(Table& t) {
  t.op("aten::dropout(Tensor input, float p, bool train) -> Tensor")
      .doc("In training, zeroes elements with probability p and scales the others by 1 / (1 - p).")
      .keeps_memory_format()
      .backward_node("MulBackward0")
      .packed({{floats(8, 8), 0.5, true}})
      .random()
      .composed_in_opmath([](Value x, Number p, bool train, Value key) {
        if (!train || p.is(0)) return x;
        return dropped(x, keep_mask(key, x, p), p);
      })
      .precondition([](Value, double p, bool, Value) { check_probability(p); })
      .itself_unless("train")
      .special("p", {0, 1})
      .samples({{floats(3, 5), 0.5, true}, {floats(3, 5), 0.5, false}, {floats(0), 0.1, true}});
  t.op("aten::native_dropout(Tensor input, float p, bool? train) -> (Tensor, Tensor)")
      .doc("dropout, and the mask of what stays.")
      .keeps_memory_format()
      .random()
      .composed_in_opmath([](Value x, Number p, std::optional<bool> train, Value key) {
        if (!train.value_or(true) || p.is(0)) return std::array{x, full(true, shape_of(x), DType::Bool)};
        Value mask = keep_mask(key, x, p);
        return std::array{dropped(x, mask, p), mask};
      })
      .precondition([](Value, double p, std::optional<bool>, Value) { check_probability(p); })
      .special("p", {0, 1})
      .samples({{floats(3, 5), 0.5, true}, {floats(3, 5), 0.5, false}});
  t.op("aten::native_dropout_backward(Tensor grad_output, Tensor mask, float scale) -> Tensor")
      .doc("grad_output * mask * scale.")
      .keeps_memory_format()
      .composed_in_opmath(scaled_by_mask)
      .samples({{floats(3, 5), bools(3, 5), 2.0}});
  t.op("aten::_masked_scale(Tensor self, Tensor mask, float scale) -> Tensor")
      .doc("self * mask * scale.")
      .composed_in_opmath(scaled_by_mask)
      .samples({{floats(3, 5), bools(3, 5), 2.0}});
  t.op("aten::feature_dropout(Tensor input, float p, bool train) -> Tensor")
      .doc("dropout of whole channels (dimensions 0 and 1).")
      .keeps_memory_format()
      .random()
      .composed_in_opmath([](Value x, Number p, bool train, Value key) {
        if (!train || p.is(0)) return x;
        return dropped(x, feature_mask(key, x, p), p);
      })
      .precondition([](Value, double p, bool, Value) { check_probability(p); })
      .itself_unless("train")
      .special("p", {0, 1})
      .samples({{floats(2, 3, 4), 0.5, true}});
  t.op("aten::alpha_dropout(Tensor input, float p, bool train) -> Tensor")
      .doc("dropout that keeps mean and variance of selu's outputs.")
      .keeps_memory_format()
      .random()
      .composed_in_opmath([](Value x, Number p, bool train, Value key) {
        if (!train || p.is(0)) return x;
        return alpha_dropped(x, keep_mask(key, x, p), p);
      })
      .precondition([](Value, double p, bool, Value) { check_probability(p); })
      .itself_unless("train")
      .special("p", {0, 1})
      .samples({{floats(3, 5), 0.5, true}});
  t.op("aten::feature_alpha_dropout(Tensor input, float p, bool train) -> Tensor")
      .doc("alpha_dropout of whole channels (dimensions 0 and 1).")
      .keeps_memory_format()
      .random()
      .composed_in_opmath([](Value x, Number p, bool train, Value key) {
        if (!train || p.is(0)) return x;
        return alpha_dropped(x, feature_mask(key, x, p), p);
      })
      .precondition([](Value, double p, bool, Value) { check_probability(p); })
      .itself_unless("train")
      .special("p", {0, 1})
      .samples({{floats(2, 3, 4), 0.5, true}});
}

}  // namespace

void add_activation(Table& t) {
  add_rectified(t);
  add_shrinks(t);
  add_smooth(t);
  add_gated(t);
  add_dropout(t);
}

}  // namespace brasa::ops
