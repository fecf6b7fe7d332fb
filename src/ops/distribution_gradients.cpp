#include <limits>

#include "ops/quadrature.h"
#include "ops/rows.h"
#include "support/error.h"

// How a sample x moves with a parameter a of its distribution if the random numbers stay: with F(x; a) staying too,
//   dx/da = -(∂F/∂a) / (∂F/∂x)
// (implicit reparameterisation, Figurnov et al. 2018). Where F is ∫ p(t; a) dt from the left end to x, this is
//   ∫ -(∂ log p(t; a)/∂a) p(t; a) / p(x; a) dt,
// or minus that integral over what is right of x. On each side of the mean it is taken over the smaller part, in float64.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Value digamma(Value x) { return prim::unary("digamma", x); }

// Of a gamma distribution ∂ log p/∂a = log t - ψ(a), with the substitutions of the incomplete gamma functions.
Value gamma_gradient(Value a, Value x) {
  Value score = log(x) - digamma(a), left = le(x, a);
  return x * integral(1.0 / (abs(x - a) + sqrt(x)), [&](Value v) {
           Value r = log1p(v);
           Value exponent = where(left, -(a * v) - x * expm1(-v), (a - 1.0) * r - x * v);
           return where(left, v - score, r + score) * exp(exponent);
         });
}

// Of a beta distribution with the second parameter b, ∂ log p/∂a = log t - ψ(a) + ψ(a + b); t = x e^-v, and 1 - t = (1 - x) e^-v on
// the other side. dx/da over 1 - x.
Value beta_gradient(Value x, Value a, Value b) {
  Value rest = 1.0 - x, odds = x / rest, left = le(x * (a + b), a);
  Value shift = digamma(a) - digamma(a + b), score = log(x) - shift;
  // The first and second derivative of the logarithm of what is integrated, at 0.
  Value near = where(left, odds, rest / x), power = where(left, b, a) - 1.0, decay = where(left, a, b);
  Value scale = 1.0 / (abs(decay - power * near) + sqrt(abs(power) * near * (1.0 + near)));
  Value whole = integral(scale, [&](Value v) {
    Value growth = log1p(-(near * expm1(-v))), weight = exp(power * growth - decay * v);
    return where(left, v - score, growth + score) * weight;
  });
  return where(left, odds, constant_like(x, 1.0)) * whole;
}

// The arguments in float64.
std::vector<Value> wide(const char* op, std::vector<Value> values) {
  DType t = dtype_of(values[0]);
  for (Value& v : values) {
    BRASA_CHECK(is_floating(dtype_of(v)) && dtype_of(v) == t, op, ": expected tensors of one floating dtype, got ",
                name(t), " and ", name(dtype_of(v)));
    v = convert(v, DType::Float64);
  }
  return values;
}

Value or_nan(Value good, Value x) { return where(good, x, scalar(kNan, DType::Float64)); }
Value or_zero(Value zero, Value x) { return where(zero, scalar(0, DType::Float64), x); }
Value inside(Value x, double low, double high) { return logical_and(gt(x, low), lt(x, high)); }

void add_gamma(Table& t) {
  t.op("aten::_standard_gamma_grad(Tensor self, Tensor output) -> Tensor")
      .doc(
          "dx/da of a sample x = output of the gamma distribution with shape a = self, by implicit reparameterisation and double "
          "exponential quadrature in float64.")
      .composed([](Value self, Value output) {
        std::vector<Value> p = wide("_standard_gamma_grad", {self, output});
        Value a = p[0], x = p[1];
        Value good = logical_and(inside(a, 0, kInf), inside(x, 0, kInf));
        Value one = scalar(1, DType::Float64);
        Value g = gamma_gradient(where(good, a, one), where(good, x, one));
        return convert(or_zero(logical_and(inside(a, 0, kInf), eq(x, 0)), or_nan(good, g)), dtype_of(self));
      })
      .samples({{floats(3, 5).in(0.1, 6), floats(5).in(0.1, 6)},
                {floats(4).in(9, 40), floats(4).in(9, 40)},
                {floats(0), floats(0)}});
}

void add_dirichlet(Table& t) {
  t.op("aten::_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor")
      .doc(
          "dx/da over 1 - x of a component x of a sample of the Dirichlet distribution, where a = alpha is its parameter and total the sum of "
          "all: x has the beta distribution of a and total - a. By implicit reparameterisation and double exponential quadrature in float64.")
      .composed([](Value x, Value alpha, Value total) {
        std::vector<Value> p = wide("_dirichlet_grad", {x, alpha, total});
        Value y = p[0], a = p[1], b = p[2] - p[1];
        Value shaped = logical_and(inside(a, 0, kInf), inside(b, 0, kInf));
        Value good = logical_and(logical_and(gt(y, 0), le(y, 1)), shaped);
        Value one = scalar(1, DType::Float64), half = scalar(0.5, DType::Float64);
        Value g = beta_gradient(where(good, y, half), where(good, a, one), where(good, b, one));
        return convert(or_zero(logical_and(shaped, eq(y, 0)), or_nan(good, g)), dtype_of(x));
      })
      .samples({{floats(3, 5).in(0.05, 0.95), floats(5).in(0.2, 3), floats(3, 1).in(3.5, 9)},
                {floats(0), floats(0), floats(0)}});
}

}  // namespace

void add_distribution_gradients(Table& t) {
  add_gamma(t);
  add_dirichlet(t);
}

}  // namespace brasa::ops
