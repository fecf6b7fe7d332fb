#include <cmath>
#include <limits>
#include <numbers>

#include "ops/random_key.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

// Numbers of distributions that take rejection, computed in float64 whatever the dtype: a comparison that rounding decides gives
// another number, so the modes would differ. Rejection without a loop: a fixed number of attempts is judged as a reduction, and
// the first accepted one is made again.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A stream of the call's own, where each element has four words for each attempt, all of one Philox block.
class Stream {
 public:
  Stream(Value key, const Shape& shape) : key_(derived_key(key)), rank_(static_cast<int64_t>(shape.size())) {
    Value i = prim::reshape(prim::iota({ir::product(shape)}, 0, DType::Int64), shape);
    index_ = pointwise("bit_or", pointwise("shl", pointwise("shr", i, 4), 6), pointwise("bit_and", i, 15));
  }

  /// In (0, 1): 32 bits of word `which`.
  Value unit(Value attempt, int which) const { return (convert(word(attempt, which), DType::Float64) + 0.5) * 0x1p-32; }
  /// In (0, 1): 52 bits of the words `which` and `which` + 1.
  Value fine_unit(Value attempt, int which) const {
    Value high = pointwise("shl", word(attempt, which), 20), low = pointwise("shr", word(attempt, which + 1), 12);
    return (convert(pointwise("bit_or", high, low), DType::Float64) + 0.5) * 0x1p-52;
  }
  /// Box & Muller 1958, of the words 0 and 1.
  Value normal(Value attempt) const {
    return sqrt(-2.0 * log(unit(attempt, 0))) * cos(2 * std::numbers::pi * unit(attempt, 1));
  }

  /// The number in [0, attempts) of the first that `accepts`, `attempts` if it accepts none. `accepts` is given the numbers of all
  /// along a new first dimension; what it reads of an element broadcasts.
  template <class F>
  Value first_accepted(int attempts, F accepts) const {
    Shape shape(static_cast<size_t>(rank_) + 1, Expr(1));
    shape[0] = Expr(attempts);
    Value number = prim::iota(shape, 0, DType::Int64);
    return reduce(where(accepts(number), number, scalar(attempts, DType::Int64)), {0}, false, "min");
  }

 private:
  Value word(Value attempt, int which) const {
    return words(key_, index_ + pointwise("shl", attempt, 56) + Number(int64_t{which} * 16));
  }
  Value key_, index_;
  int64_t rank_;
};

Value floor(Value x) { return prim::unary("floor", x); }
Value constant(double x) { return scalar(x, DType::Float64); }

void check_floating(const char* op, const char* what, Value x) {
  BRASA_CHECK(is_floating(dtype_of(x)), op, ": expected a floating ", what, ", got ", type_of(x));
}

// ---- Gamma

// The logarithm of gamma numbers (float64), which themselves would underflow for small shapes: Marsaglia & Tsang 2000,
//   d (1 + e)³,  d = a - 1/3,  e = z / (3 sqrt d),  accepted if log u < z²/2 + d - d (1 + e)³ + 3 d log(1 + e),
// whose right side is 3 d (log(1 + e) - e + e²/2 - e³/3). A shape below 1 is raised by 1 and the number multiplied by u^(1/a).
// An attempt fails with probability 0.048 for a shape of 1 and less for greater ones: all with 7e-14. Then e = 0.
Value log_gamma_numbers(const Stream& s, Value a) {
  constexpr int kAttempts = 10;
  Value small = lt(a, 1);
  Value d = where(small, a + 1.0, a) - 1.0 / 3, width = rsqrt(9.0 * d);
  auto candidate = [&](Value attempt) { return width * s.normal(attempt); };
  Value first = s.first_accepted(kAttempts, [&](Value attempt) {
    Value e = candidate(attempt);  // log1p is NaN below -1: rejected
    return lt(log(s.unit(attempt, 2)), 3.0 * d * (log1p(e) - e * (1.0 - e * (0.5 - e * (1.0 / 3)))));
  });
  Value e = where(lt(first, kAttempts), candidate(first), constant(0));
  Value y = log(d) + 3.0 * log1p(e);
  Value boost = log(s.fine_unit(scalar(kAttempts, DType::Int64), 0)) / a;
  return where(ge(a, 0), where(small, y + boost, y), constant(kNan));
}

double smallest_normal(DType t) { return t == DType::Float16 ? 0x1p-14 : t == DType::Float64 ? 0x1p-1022 : 0x1p-126; }
double below_one(DType t) {
  int digits = t == DType::BFloat16 ? 8 : t == DType::Float16 ? 11 : t == DType::Float32 ? 24 : 53;
  return 1 - std::ldexp(1, -digits);
}

Value standard_gamma(Value a, Value key) {
  check_floating("_standard_gamma", "shape parameter", a);
  Value x = exp(log_gamma_numbers(Stream(key, shape_of(a)), convert(a, DType::Float64)));
  return convert(maximum(x, constant(smallest_normal(dtype_of(a)))), dtype_of(a));
}

// Gamma numbers over their sum, by their logarithms: one of them is above the others by orders of magnitude where a is small.
Value sample_dirichlet(Value alpha, Value key) {
  check_floating("_sample_dirichlet", "concentration", alpha);
  constexpr double kLowest = -1e300;  // in place of -inf of a = 0, whose differences are NaN
  Value y = maximum(log_gamma_numbers(Stream(key, shape_of(alpha)), convert(alpha, DType::Float64)), constant(kLowest));
  Value x = call("aten::softmax.int", {at_least_1d(y), -1, Arg()});
  DType t = dtype_of(alpha);
  x = minimum(maximum(prim::reshape(x, shape_of(y)), constant(smallest_normal(t))), constant(below_one(t)));
  return convert(x, t);
}

// The derivatives of both are those of implicit reparameterisation, in both directions: for fixed bits the acceptance depends on the
// parameters too, and what follows from the composition would be wrong in the mean.
Value gamma_derivative(Value a, Value x, Value by) { return call("aten::_standard_gamma_grad", {a, x}) * by; }

// dx_i/da_j = slope_j (δ_ij - x_i).
Value dirichlet_slope(Value alpha, Value x) {
  Value total = sum(alpha, {rank_of(alpha) - 1}, true);
  return call("aten::_dirichlet_grad", {x, alpha, broadcast_to(total, shape_of(alpha))});
}

Value dirichlet_vjp(Value alpha, Value x, Value ct) {
  if (rank_of(x) == 0) return zeros_like(x);
  return dirichlet_slope(alpha, x) * (ct - sum(x * ct, {rank_of(x) - 1}, true));
}

Value dirichlet_jvp(Value alpha, Value x, Value tangent) {
  if (rank_of(x) == 0) return zeros_like(x);
  Value each = dirichlet_slope(alpha, x) * tangent;
  return each - x * sum(each, {rank_of(x) - 1}, true);
}

template <Value (*f)(Value parameter, Value out, Value tangent)>
std::vector<Value> forward(const Node& n, std::span<const Value> tangents) {
  return {f(n.inputs()[0], const_cast<Node&>(n).out(), tangents[0])};
}

// ---- Poisson and binomial

// A distribution of the numbers 0, 1, …: how many steps of P(0) + P(1) + … are below u, for means up to 10, of which more than
// kSteps has a probability of 1e-16. P(k + 1) / P(k) is slope / (k + 1) + base (Panjer 1981).
Value inversion(Value u, Value zero, Value slope, Value base) {
  constexpr int kSteps = 45;
  Value p = zero, sum = zero, k = where(gt(u, sum), constant(1), constant(0));
  for (int i = 1; i < kSteps; ++i) {
    p = p * (slope * (1.0 / i) + base);
    sum = sum + p;
    k = where(gt(u, sum), constant(i + 1), k);
  }
  return k;
}

// m ((1 + e) log(1 + e) - e) for y = m (1 + e): y log(y / m) + m - y without cancellation for great m (Loader 2000).
struct Deviance {
  Value value, log_ratio;
};
Deviance deviance(Value y, Value m) {
  Value e = (y - m) / m, l = log1p(e);
  return {m * ((1.0 + e) * l - e), l};
}

// log (y - 1)! = (y - 1/2) log y - y + log(2π)/2 + remainder: four terms of Stieltjes' continued fraction of 1/12, 1/30, 53/210 and
// 195/371, wrong by 5e-5 at y = 1 and 3e-7 at y = 2, which have probabilities below 5e-4 for means of 10 and more.
Value stirling_remainder(Value y) {
  constexpr double a = 1.0 / 12, b = 1.0 / 30, c = 53.0 / 210, d = 195.0 / 371;
  Value w = y * y;
  return a * y * (w + (c + d)) / (w * (w + (b + c + d)) + b * d);
}

// The transformed rejection of Hörmann 1993 (BTRS) for a binomial distribution of the probability p <= 1/2 and a mean of at least 10, or
// for its limit of p = 0, a Poisson distribution: k = floor((2 a / (1/2 - |u|) + b) u + mean + 1/2), accepted if
// v <= P(k) / P(mode) (a / (1/2 - |u|)² + b) / height. An attempt fails with a probability below 0.3: all with 3e-11, and then k is the
// mode. `weight` is log P(k) but for a constant, and NaN where P(k) is 0.
template <class F>
Value transformed_rejection(const Stream& s, Value mean, Value deviation, Value mode, Value p, F weight) {
  constexpr int kAttempts = 20;
  Value b = 1.15 + 2.53 * deviation, a = 0.0248 * b - 0.0873 + 0.01 * p, height = (2.83 + 5.1 / b) * deviation;
  Value threshold = weight(mode);
  struct Candidate {
    Value k, density;
  };
  auto candidate = [&](Value attempt) {
    Value u = s.fine_unit(attempt, 0) - 0.5, edge = 0.5 - abs(u);
    return Candidate{floor((2.0 * a / edge + b) * u + (mean + 0.5)), a / (edge * edge) + b};
  };
  Value first = s.first_accepted(kAttempts, [&](Value attempt) {
    Candidate c = candidate(attempt);
    return le(log(s.fine_unit(attempt, 2) * height / c.density), weight(c.k) - threshold);
  });
  return where(lt(first, kAttempts), candidate(first).k, mode);
}

Value poisson(Value rate, Value key) {
  check_floating("poisson", "rate", rate);
  Value ok = ge(rate, 0);
  check_values(ok, "poisson: expected rates that are not negative");
  Value mean = convert(rate, DType::Float64), small = lt(mean, 10), finite = lt(mean, kInf);
  Stream s(key, shape_of(rate));
  Value little = where(small, mean, constant(1)), great = where(logical_and(ge(mean, 10), finite), mean, constant(10));
  Value by_inversion = inversion(s.fine_unit(scalar(0, DType::Int64), 0), exp(-little), little, constant(0));
  Value by_rejection = transformed_rejection(s, great, sqrt(great), floor(great), constant(0), [&](Value k) {
    Value y = k + 1.0;
    Deviance d = deviance(y, great);
    return 0.5 * d.log_ratio - d.value - stirling_remainder(y);
  });
  return convert(where(small, by_inversion, where(finite, by_rejection, mean)), dtype_of(rate));
}

Value binomial(Value count, Value prob, Value key) {
  check_floating("binomial", "count", count);
  BRASA_CHECK(dtype_of(prob) == dtype_of(count), "binomial: expected count and prob of one dtype, got ", type_of(count),
              " and ", type_of(prob));
  Shape shape = broadcast_shapes(shape_of(count), shape_of(prob));
  Value n = floor(broadcast_to(convert(count, DType::Float64), shape)),
        p = broadcast_to(convert(prob, DType::Float64), shape);
  // Of successes and failures those that are fewer.
  Value turned = gt(p, 0.5), rare = where(turned, 1.0 - p, p);
  Value inside = logical_and(logical_and(gt(n, 0), lt(n, kInf)), gt(rare, 0));
  Value mean = n * rare, small = lt(mean, 10);
  Stream s(key, shape);

  Value few = logical_and(inside, small);
  Value n1 = where(few, n, constant(1)), p1 = where(few, rare, constant(0.5)), odds = p1 / (1.0 - p1);
  Value by_inversion =
      minimum(inversion(s.fine_unit(scalar(0, DType::Int64), 0), exp(n1 * log1p(-p1)), (n1 + 1.0) * odds, -odds), n1);

  Value many = logical_and(inside, logical_not(small));
  Value n2 = where(many, n, constant(20)), p2 = where(many, rare, constant(0.5)), q2 = 1.0 - p2;
  Value deviation = sqrt(n2 * p2 * q2);
  Value by_rejection = transformed_rejection(s, n2 * p2, deviation, floor((n2 + 1.0) * p2), p2, [&](Value k) {
    Value y = k + 1.0, z = n2 - k + 1.0;
    Deviance success = deviance(y, (n2 + 2.0) * p2), failure = deviance(z, (n2 + 2.0) * q2);
    return 0.5 * (success.log_ratio + failure.log_ratio) - success.value - failure.value - stirling_remainder(y) -
           stirling_remainder(z);
  });
  Value k = where(small, by_inversion, by_rejection);
  k = where(turned, n - k, k);
  // What PyTorch answers where there is nothing to draw, from the last to the first that it looks at.
  k = where(logical_or(is_nan(p), is_nan(n)), constant(kNan), k);
  k = where(logical_or(ge(p, 1), eq(n, kInf)), n, k);
  k = where(logical_or(le(n, 0), le(p, 0)), constant(0), k);
  return convert(k, dtype_of(count));
}

}  // namespace

void add_distributions(Table& t) {
  t.op("aten::_standard_gamma(Tensor self, Generator? generator=None) -> Tensor")
      .doc(
          "Gamma numbers of the shape self and the scale 1 (Marsaglia & Tsang 2000), at least the dtype's smallest normal number. NaN where "
          "self is negative or NaN. The gradient is that of implicit reparameterisation.")
      .random()
      .composed(standard_gamma)
      .vjp(own_derivative([](const Saved& s) { return std::vector{gamma_derivative(s.in(0), s.out(), s.ct())}; }))
      .jvp(forward<gamma_derivative>)
      .samples({{floats(3, 5).in(0.1, 6)}, {floats(0)}, {floats(7).in(0, 0.01).strided(2)}});
  t.op("aten::_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor")
      .doc(
          "Numbers of the Dirichlet distribution with the concentrations that self has along its last dimension: gamma numbers over their "
          "sum, kept inside of (0, 1). The gradient is that of implicit reparameterisation.")
      .random()
      .composed(sample_dirichlet)
      .vjp(own_derivative([](const Saved& s) { return std::vector{dirichlet_vjp(s.in(0), s.out(), s.ct())}; }))
      .jvp(forward<dirichlet_jvp>)
      .samples({{floats(3, 5).in(0.1, 6)}, {floats(2, 0)}, {floats(4).in(0.01, 0.1).strided(2)}});
  t.op("aten::poisson(Tensor self, Generator? generator=None) -> Tensor")
      .doc(
          "Poisson numbers of the rates self: by inversion below 10, else by transformed rejection (Hörmann 1993). The gradient is zero.")
      .random()
      .composed(poisson)
      .vjp(zero_derivative())
      .samples({{floats(3, 5).in(0, 9)}, {floats(7).in(10, 100).strided(2)}, {floats(0)}});
  t.op("aten::binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor")
      .doc(
          "How many of count trials succeed that have the probability prob: by inversion if fewer than 10 are expected, else by transformed "
          "rejection (Hörmann 1993). A count is rounded down. There is no gradient.")
      .random()
      .composed(binomial)
      .no_gradient()
      .samples({{floats(3, 1).in(0, 20), floats(5).in(0, 1)},
                {floats(7).in(30, 500).strided(2), floats(7).in(0.1, 0.9)},
                {floats(0), floats(0)}});
}

}  // namespace brasa::ops
