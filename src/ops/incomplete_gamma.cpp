#include <limits>

#include "ops/accepted.h"
#include "ops/quadrature.h"
#include "ops/rows.h"
#include "support/error.h"

// The regularised incomplete gamma functions P and Q = 1 - P.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Of P for x <= a and of Q for x > a, in float64. Both are x^a e^-x / Γ(a) ∫ exp(g(v)) dv over v > 0 with
//   g(v) = -a v - x expm1(-v)        (t = x e^-v in DLMF 8.2.1),
//   g(v) = (a - 1) log1p(v) - x v    (t = x (1 + v) in DLMF 8.2.2),
// which fall from 0, at a scale near 1 / (|x - a| + sqrt x).
Value smaller_part(Value a, Value x) {
  Value all = integral(1.0 / (abs(x - a) + sqrt(x)), [&](Value v) {
    Value lower = -(a * v) - x * expm1(-v), upper = (a - 1.0) * log1p(v) - x * v;
    return exp(where(le(x, a), lower, upper));
  });
  return exp(a * log(x) - x - prim::unary("lgamma", a)) * all;
}

template <bool upper>
Value incomplete(Value first, Value second) {
  constexpr const char* op = upper ? "igammac" : "igamma";
  auto [p, q] = promoted(to_float(real_only(op, first)), to_float(real_only(op, second)));
  Value a = convert(p, DType::Float64), x = convert(q, DType::Float64);
  Value inside = logical_and(logical_and(gt(a, 0), gt(x, 0)), logical_and(lt(a, kInf), lt(x, kInf)));
  Value one = constant_like(x, 1.0), zero = zeros_like(x);
  Value part = smaller_part(where(inside, a, one), where(inside, x, one));
  Value y = upper ? where(gt(x, a), part, 1.0 - part) : where(gt(x, a), 1.0 - part, part);
  // At the edges, from the last to the first that PyTorch looks at.
  Value all = upper ? zero : one, none = upper ? one : zero, nan = constant_like(x, kNan);
  y = where(eq(x, kInf), all, y);
  y = where(eq(a, kInf), where(eq(x, kInf), nan, none), y);
  y = where(eq(x, 0), none, y);
  y = where(eq(a, 0), where(gt(x, 0), all, nan), y);
  Value outside = logical_or(logical_or(lt(x, 0), lt(a, 0)), logical_or(is_nan(x), is_nan(a)));
  return convert(where(outside, nan, y), dtype_of(p));
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
              ? "Q(a, x) = Γ(a, x) / Γ(a), the regularised upper incomplete gamma function, by double exponential quadrature in "
                "float64. The derivative is that by x."
              : "P(a, x) = 1 - Γ(a, x) / Γ(a), the regularised lower incomplete gamma function, by double exponential "
                "quadrature in float64. The derivative is that by x.")
      .composed_in_opmath([](Value a, Value x) { return incomplete<upper>(a, x); })
      .vjp(derivative<upper>())
      .samples({{ints(3, 5).in(1, 6), floats(5).in(0.5, 6)},
                {ints(4).in(1, 9), floats(4).in(0.1, 20)},
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
