#include <cmath>
#include <limits>

#include "ops/promotion.h"
#include "ops/rows.h"
#include "ops/series.h"
#include "support/error.h"

// Hurwitz's ζ and the derivatives of ψ.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kPi = 3.14159265358979323846;

Value pow2(Value x, Value e) { return prim::binary("pow", x, e); }

// Σ (q + k)^-s for q > 0, s > 1: some terms, and the Euler–Maclaurin formula for the rest, off by 1e-8 in float32, in float64 by 1e-15.
Value zeta_right(Value s, Value q) {
  constexpr double kBernoulli[] = {
      1. / 12, -1. / 720, 1. / 30240, -1. / 1209600, 1. / 47900160, -691. / 1307674368000, 1. / 74724249600};
  bool wide = dtype_of(q) == DType::Float64;
  Value sum = pow2(q, -s), a = q, b = sum;
  for (int i = 0; i < (wide ? 9 : 3); ++i) {
    a = a + 1.0;
    b = pow2(a, -s);
    sum = sum + b;
  }
  Value rest = b * a / (s - 1.0) - 0.5 * b;
  // (k + 2 of the factors s (s + 1) ...) · a^-(s + 1 + k): neither is multiplied up by itself, as one may be infinite where the other is 0.
  Value term = b / a * s;
  double k = 0;
  auto add = [&](double c) {
    rest = rest + term * c;
    for (double more : {k + 1, k + 2}) term = term * ((s + more) / a);
    k += 2;
  };
  for (double c : Coefficients(kBernoulli).first(wide ? 7 : 5)) add(c);
  // An infinite order has no rest, but infinite factors.
  Value gone = eq(b, 0), finite = lt(a, kInf);
  return sum + where(logical_and(gone, finite), zeros_like(rest), rest);
}

// For q < 0 and a whole s, Σ over all integers k of (q + k)^-s has the period 1 in q: with d = q - round(q) moved into (0, 1),
// ζ(s, q) = ζ(s, d) + (-1)^s (ζ(s, 1 - d) - ζ(s, 1 - q)).
Value zeta(Value s, Value q) {
  Value one = constant_like(q, 1.0), left = lt(q, 0), whole = eq(prim::unary("floor", s), s);
  Value rest = q - prim::unary("round", q), above = gt(s, 1);
  Value reflected = logical_and(logical_and(left, ne(rest, 0)), logical_and(whole, above));
  Value is_sum = logical_and(above, logical_or(gt(q, 0), reflected));
  Value large = where(is_sum, s, constant_like(s, 2.0));
  Value d = where(gt(rest, 0), rest, rest + 1.0), e = where(gt(rest, 0), 1.0 - rest, -rest);
  Value first = zeta_right(large, where(reflected, d, where(gt(q, 0), q, one)));
  Value behind = zeta_right(large, where(reflected, 1.0 - q, one)),
        second = zeta_right(large, where(reflected, e, one)) - behind;
  Value half = large * 0.5;
  Value even = eq(prim::unary("floor", half), half);
  // Where d and 1 - d are equal, what is left of an odd order is ζ(s, 1 - q). Two that overflow differ by more than can be said.
  Value most = constant_like(first, kInf), overflows = where(lt(d, e), most, -most);
  Value one_does = eq(first, kInf), other_does = eq(second, kInf), difference = first - second;
  Value odd = where(logical_and(one_does, other_does), overflows, difference);
  odd = where(eq(d, e), behind, odd);
  Value nan = constant_like(q, kNan), infinite = constant_like(q, kInf);
  Value y = where(is_sum, where(reflected, where(even, first + second, odd), first), nan);
  y = where(logical_and(le(q, 0), eq(prim::unary("floor", q), q)), infinite, y);
  y = where(lt(s, 1), nan, where(eq(s, 1), infinite, y));
  return where(logical_or(is_nan(s), is_nan(q)), nan, y);
}

Value zeta_of(Value a, Value b) {
  auto [s, q] = promoted_to_float(a, b);
  return zeta(s, q);
}

// As a value of this dtype.
Value number(const Saved& s, size_t i, DType dtype) {
  if (auto* v = s.args[i].get_if<Value>()) return convert(*v, dtype);
  return scalar(Number(s.args[i]), dtype);
}

Vjp zeta_derivative() {
  Vjp by_second = own_derivative([](const Saved& s) {
    DType t = dtype_of(s.out());
    Value x = number(s, 0, t), q = number(s, 1, t);
    return std::vector{Value{}, -(s.ct() * x * zeta_of(x + 1.0, q))};
  });
  return [by_second](const Node& node, std::span<const Value> cts, const std::vector<bool>& needs) {
    BRASA_CHECK(needs.size() == 1 || !needs[0], node.op->name(), ": there is no derivative by the first argument");
    return by_second(node, cts, needs);
  };
}

// ψ′ as PyTorch computes it in the type of x: reflection to x >= 1/2, six steps of the recurrence, and the asymptotic series of
// Abramowitz & Stegun 6.4.12.
Value trigamma(Value x) {
  Value low = lt(x, 0.5), y = where(low, 1.0 - x, x), r = zeros_like(x);
  for (int i = 0; i < 6; ++i) {
    r = r + 1.0 / (y * y);
    y = y + 1.0;
  }
  Value w = 1.0 / (y * y);
  r = r + (1.0 + 1.0 / (2.0 * y) + w * (1. / 6 - w * (1. / 30 - w * (1. / 42 - w * (1. / 30))))) / y;
  Value s = sin(x * kPi);
  return where(low, kPi * kPi / (s * s) - r, r);
}

Value polygamma(const Number& n, Value x) {
  if (n.is(0)) return prim::unary("digamma", x);
  if (n.is(1)) return trigamma(x);
  Value order = scalar(n, DType::Float64), half = order * 0.5;
  Value size = exp(prim::unary("lgamma", order + 1.0));
  Number factor(where(eq(prim::unary("floor", half), half), -size, size));
  // n! may be beyond what the dtype holds where the product is not.
  Value series = convert(zeta(constant_like(x, n + 1), x), DType::Float64);
  return convert(factor * series, dtype_of(x));
}

void check_order(int64_t n, Value) { BRASA_CHECK(n >= 0, "polygamma(n, x) does not support negative n, got ", n); }

}  // namespace

void add_zeta(Table& t) {
  const char* doc =
      "Hurwitz's ζ(x, q) = Σ (q + k)^-x, by some terms and the Euler–Maclaurin formula; NaN for x < 1, and for q < 0 if x is not "
      "whole. The derivative is that by q.";
  t.op("aten::special_zeta(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc(doc)
      .composed([](Value x, Value q) { return zeta_of(x, q); })
      .vjp(zeta_derivative())
      .samples(
          {{ints(3, 5).in(2, 6), floats(5).in(0.5, 4)}, {ints(4).in(2, 5), ints(4).in(1, 5)}, {ints(0), floats(0)}});
  t.op("aten::special_zeta.self_scalar(Scalar self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc(doc)
      .composed([](Number a, Value b) {
        auto [q, s] = promoted_to_float(b, a);
        return zeta(s, q);
      })
      .vjp(zeta_derivative())
      .samples({{2.5, floats(3, 5).in(0.5, 4)}, {3, ints(4).in(1, 5)}});
  t.op("aten::special_zeta.other_scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc(doc)
      .composed([](Value a, Number b) {
        auto [s, q] = promoted_to_float(a, b);
        return zeta(s, q);
      })
      .no_gradient()
      .samples({{floats(3, 5).in(1.5, 6), 1.5}, {ints(4).in(2, 5), 2}});
  auto derivative = own_derivative([](const Saved& s) {
    Value g = call("aten::special_polygamma", {(s.arg<Number>(0) + 1).arg(), s.in(1)});
    return std::vector{Value{}, s.ct() * g};
  });
  t.op("aten::special_polygamma(int n, Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("The n-th derivative of ψ: ψ itself for n = 0, then (-1)^(n+1) n! ζ(n + 1, x).")
      .composed_in_opmath([](Number n, Value x) { return polygamma(n, to_float(x)); })
      .precondition(check_order)
      .special("n", {0, 1})
      .vjp(derivative)
      .samples({{1, floats(3, 5).in(0.5, 4)},
                {2, floats(7).strided(2).in(0.5, 4)},
                {0, floats(4).in(1, 2)},
                {3, ints(4).in(1, 4)}});
  t.op("aten::polygamma(int n, Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("special_polygamma.")
      .composed([](Number n, Value x) { return call("aten::special_polygamma", {n.arg(), x}); })
      .precondition(check_order)
      .special("n", {0, 1})
      .samples({{1, floats(3, 5).in(0.5, 4)}, {4, floats(4).in(0.5, 4)}});
}

}  // namespace brasa::ops
