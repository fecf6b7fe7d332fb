#include <iterator>
#include <limits>

#include "ops/accepted.h"
#include "ops/promotion.h"
#include "ops/rows.h"
#include "ops/series.h"
#include "support/error.h"

// The regularised incomplete gamma functions P and Q = 1 - P.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Gauss and Legendre's rule on [0, 1].
constexpr double kPoints[] = {0.0024063900014893447, 0.012635722014345263, 0.0308627239986336,  0.056792236497799464,
                              0.08999900701304853,   0.12993790421072282,  0.17595317403151223, 0.22728926430558022,
                              0.28310324618697746,   0.3424786601519183,   0.40444056626319186, 0.4679715535686972,
                              0.5320284464313028,    0.5955594337368082,   0.6575213398480817,  0.7168967538130225,
                              0.7727107356944198,    0.8240468259684878,   0.8700620957892772,  0.9100009929869515,
                              0.9432077635022005,    0.9691372760013663,   0.9873642779856547,  0.9975936099985107};
constexpr double kWeights[] = {0.006170614899994345, 0.01426569431446678,  0.022138719408709706, 0.02964929245771818,
                               0.03667324070554008,  0.0430950807659766,   0.04880932605205696,  0.05372213505798278,
                               0.05775283402686276,  0.06083523646390165,  0.06291872817341412,  0.06396909767337601,
                               0.06396909767337601,  0.06291872817341412,  0.06083523646390165,  0.05775283402686276,
                               0.05372213505798278,  0.04880932605205696,  0.0430950807659766,   0.03667324070554008,
                               0.02964929245771818,  0.022138719408709706, 0.01426569431446678,  0.006170614899994345};
// From here on the integrals below need no more of them, and the sums many terms.
constexpr double kLargeOrder = 12;

// Where the operand is not asked for, one that ends every sum at once.
Value only_where(Value asked, Value v, double otherwise) { return where(asked, v, constant_like(v, otherwise)); }

// The integral of t^(a-1) e^-t from 0 to x <= a, or from x > a on, over x^a e^-x, in float64: t = x (1 ± v), where the integrand's logarithm
// (a - 1) log1p(±v) ∓ x v falls from 0 to about -38 in the range that the points are spread over (DLMF 8.2.1, 8.2.2).
Value by_quadrature(Value a, Value x, Value lower) {
  Value one = constant_like(x, 1.0), sign = where(lower, -one, one), d = abs(x - a), sum;
  Value range = 76.0 / (d + sqrt(d * d + 76.0 * x));
  range = where(lower, minimum(range, one), range * (1.0 + 0.5 * range));
  for (size_t i = 0; i < std::size(kPoints); ++i) {
    Value v = sign * range * kPoints[i];
    Value part = exp((a - 1.0) * log1p(v) - x * v) * kWeights[i];
    sum = sum ? sum + part : part;
  }
  return sum * range;
}

double epsilon(Value v) { return dtype_of(v) == DType::Float64 ? 0x1p-53 : 0x1p-24; }

// The same for x <= a: Σ xⁿ / (a (a + 1) … (a + n)), DLMF 8.7.1. Terms that are too small for any lane are not computed.
Value further_terms(Value a, Value x, Value term, Value sum, int n, int most) {
  constexpr int kFew = 7;
  for (int end = n + kFew; n < end; ++n) {
    term = term * (x / (a + static_cast<double>(n)));
    sum = sum + term;
  }
  if (n > most) return sum;
  return where(gt(term, sum * epsilon(sum)), further_terms(a, x, term, sum, n, most), sum);
}
Value by_series(Value a, Value x) {
  Value first = 1.0 / a;
  return further_terms(a, x, first, first, 1, dtype_of(x) == DType::Float64 ? 42 : 28);
}

// The same for x > a, x > 1: the continued fraction DLMF 8.9.2 by the recurrence of its numerators p and denominators q; a few steps at a
// time q becomes 1, and steps end when the last one changed nothing.
struct Convergents {
  Value p, q, p_before, q_before;
};
Value further_steps(Value a, Value x, Convergents c, int n, int most) {
  constexpr int kFew = 8;
  for (int end = n + kFew; n < end; ++n) {
    double k = n;
    Value numerator = (k - a) * k, denominator = x + (2 * k + 1 - a);
    Value p = c.p * denominator - c.p_before * numerator, q = c.q * denominator - c.q_before * numerator;
    c = {p, q, c.p, c.q};
  }
  Value scale = 1.0 / c.q, now = c.p * scale;
  if (n > most) return now;
  Convergents next{now, constant_like(now, 1.0), c.p_before * scale, c.q_before * scale};
  Value moved = abs(now * next.q_before - next.p_before), same = abs(next.p_before) * (4 * epsilon(now));
  return where(gt(moved, same), further_steps(a, x, next, n, most), now);
}
Value by_fraction(Value a, Value x) {
  // Beyond, the factor x^a e^-x is 0; numerators stay finite.
  bool wide = dtype_of(x) == DType::Float64;
  x = minimum(x, constant_like(x, wide ? 1000.0 : 200.0));
  Value one = constant_like(x, 1.0);
  return further_steps(a, x, {one, x + (1.0 - a), zeros_like(x), one}, 1, wide ? 80 : 32);
}

// Q for a < x < 1.1, in float64: 1 - x^a / Γ(1 + a) (1 + a Σ (-x)ⁿ / (n! (a + n))), without what cancels.
Value of_small(Value a, Value x) {
  // log Γ(1 + a) = -γ a + Σ ζ(k) (-a)ᵏ / k, where 1 + a would lose it.
  constexpr double kZeta[] = {
      -0.11133426586956469, 0.12550966952474304,  -0.14404989676884614, 0.16955717699740822, -0.207385551028674,
      0.27058080842778454,  -0.40068563438653143, 0.8224670334241132,   -0.5772156649015329, 0.0};
  Value log_gamma = where(lt(a, 0x1p-6), polynomial(a, kZeta), prim::unary("lgamma", a + 1.0));
  Value e = a * log(x) - log_gamma, term = constant_like(x, 1.0), sum = zeros_like(x);
  for (int n = 1; n <= 20; ++n) {
    term = term * x * (-1.0 / n);
    sum = sum + term / (a + static_cast<double>(n));
  }
  return -expm1(e) - a * exp(e) * sum;
}

// P for x <= a, Q for x > a.
Value smaller_part(Value a, Value x) {
  DType t = dtype_of(x);
  auto wide = [](Value v) { return convert(v, DType::Float64); };
  Value lower = le(x, a), large = ge(a, kLargeOrder), few = logical_not(large);
  Value small = logical_and(logical_not(lower), lt(x, 1.1)), in_series = logical_and(lower, few);
  Value in_fraction = logical_and(logical_not(logical_or(lower, small)), few);
  Value y = where(lower, by_series(only_where(in_series, a, 1.0), only_where(in_series, x, 0.0)),
                  by_fraction(only_where(in_fraction, a, 1.0), only_where(in_fraction, x, 100.0)));
  Value wa = wide(a), wx = wide(x);
  Value integral = where(large, by_quadrature(wa, wx, lower), wide(y));
  Value factor = exp(wa * log(wx) - wx - prim::unary("lgamma", wa));
  return convert(where(small, of_small(wa, wx), factor * integral), t);
}

template <bool upper>
Value incomplete(Value first, Value second) {
  constexpr const char* op = upper ? "igammac" : "igamma";
  auto [p, q] = promoted_to_float(real_only(op, first), real_only(op, second));
  Value a = p, x = q;
  Value inside = logical_and(logical_and(gt(a, 0), gt(x, 0)), logical_and(lt(a, kInf), lt(x, kInf)));
  Value one = constant_like(x, 1.0), zero = zeros_like(x);
  Value part = smaller_part(only_where(inside, a, 1.0), only_where(inside, x, 1.0));
  Value y = where(inside, upper ? where(gt(x, a), part, 1.0 - part) : where(gt(x, a), 1.0 - part, part), zero);
  // At the edges, from the last to the first that PyTorch looks at.
  Value all = upper ? zero : one, none = upper ? one : zero, nan = constant_like(x, kNan);
  y = where(eq(x, kInf), all, y);
  y = where(eq(a, kInf), where(eq(x, kInf), nan, none), y);
  y = where(eq(x, 0), none, y);
  y = where(eq(a, 0), where(gt(x, 0), all, nan), y);
  Value outside = logical_or(logical_or(lt(x, 0), lt(a, 0)), logical_or(is_nan(x), is_nan(a)));
  return where(outside, nan, y);
}

template <bool upper>
Vjp derivative() {
  Vjp by_second = own_derivative([](const Saved& s) {
    DType t = dtype_of(s.ct());
    Value a = convert(s.in(0), t), x = convert(s.in(1), t);
    Value density = exp((a - 1.0) * log(x) - x - prim::unary("lgamma", a));
    return std::vector{Value{}, s.ct() * (upper ? -density : density)};
  });
  return [by_second](const Node& node, std::span<const Value> cts, const std::vector<bool>& needs) {
    BRASA_CHECK(!needs[0], node.op->name(), ": there is no derivative by the first argument");
    return by_second(node, cts, needs);
  };
}

template <bool upper>
void add(Table& t, const char* name) {
  t.op(str("aten::", name, "(Tensor self, Tensor other) -> Tensor"))
      .out(Out::Cast)
      .doc(
          upper
              ? "Q(a, x) = Γ(a, x) / Γ(a), the regularised upper incomplete gamma function, by a continued fraction for a < 12, else "
                "by quadrature. The derivative is that by x."
              : "P(a, x) = 1 - Γ(a, x) / Γ(a), the regularised lower incomplete gamma function, by its power series for a < 12, "
                "else by quadrature. The derivative is that by x.")
      .composed_in_opmath([](Value a, Value x) { return incomplete<upper>(a, x); })
      .vjp(derivative<upper>())
      .samples({{ints(3, 5).in(1, 6), floats(5).in(0.5, 6)},
                {ints(4).in(1, 9), floats(4).in(0.1, 20)},
                {ints(4).in(11, 40), floats(4).in(5, 60)},
                {ints(0), floats(0)}});
}

}  // namespace

void add_incomplete_gamma(Table& t) {
  add<false>(t, "igamma");
  add<true>(t, "igammac");
  t.alias("aten::special_gammainc", "aten::igamma");
  t.alias("aten::special_gammaincc", "aten::igammac");
}

}  // namespace brasa::ops
