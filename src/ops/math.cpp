#include <cmath>
#include <limits>

#include "ops/accepted.h"
#include "ops/algebra.h"
#include "ops/complex.h"
#include "ops/literal.h"
#include "ops/promotion.h"
#include "ops/rows.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

constexpr double kPi = 3.14159265358979323846;

// A floating primitive as an operator: integers become float32, reduced floats are computed in float32.
template <Literal primitive>
RowBuilder function(Table& t, const char* name, const char* doc, double low = -2, double high = 2) {
  return t.op(str("aten::", name, "(Tensor self) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value x) { return prim::unary(primitive.text, to_float(x)); })
      .samples({{floats(3, 5).in(low, high)},
                {floats(7).strided(2).in(low, high)},
                {floats(0)},
                {ints(4).in(std::ceil(low), 1)}});
}

// A primitive that keeps integers as they are and has derivative 0.
template <Literal primitive>
RowBuilder step(Table& t, const char* name, const char* doc) {
  return t.op(str("aten::", name, "(Tensor self) -> Tensor"))
      .doc(doc)
      .composed_in_opmath([](Value x) {
        BRASA_CHECK(!is_complex(dtype_of(x)), primitive.text, " is not supported for complex inputs");
        if (!is_floating(dtype_of(x))) return x;
        return prim::unary(primitive.text, x);
      })
      .vjp(zero_derivative())
      .samples({{floats(3, 5)}, {ints(4)}, {floats(0)}});
}

// 10^n, exact where float64 holds it: the product of 10^(2^k) for the bits of n. All above 10^308 is infinite.
Number power_of_ten(Expr n) {
  constexpr int64_t kMost = 511;
  n = ir::min(n, kMost);
  Number out(1.0);
  double factor = 10;
  for (int64_t bit = 1; bit <= kMost; bit *= 2, factor *= factor) {
    Expr digit = ir::mod(ir::floordiv(n, bit), 2);
    if (digit.is(0)) continue;
    if (digit.is(1)) {
      out = out * factor;
    } else {
      Value on = eq(size_tensor(digit, {}), 1);
      out = out * Number(where(on, scalar(factor, DType::Float64), scalar(1.0, DType::Float64)));
    }
  }
  return out;
}

// The bits of a number without its sign count the numbers from 0 on.
Value next_of_16_bits(Value x, Value y) {
  DType t = dtype_of(x), integer = DType::Int16;
  auto number = [&](int16_t bits) { return scalar(int64_t{bits}, integer); };
  Value away = eq(lt(x, y), gt(x, 0));
  Value moved = prim::bitcast(prim::bitcast(x, integer) + where(away, number(1), number(-1)), t);
  Value first = prim::bitcast(where(gt(y, 0), number(1), number(INT16_MIN + 1)), t);
  Value out = where(eq(x, y), y, where(eq(x, 0), first, moved));
  return where(logical_or(ne(x, x), ne(y, y)), x + y, out);
}

Value sgn(Value x) {
  if (!is_complex(dtype_of(x))) return call("aten::sign", {x});
  Value size = magnitude(x), nothing = eq(size, 0), divisor = where(nothing, constant_like(size, 1), size);
  return complex(real(x) / divisor, imag(x) / divisor);
}

void add_functions(Table& t) {
  function<"exp">(t, "exp", "e to the power of self.").autocast(Autocast::None, Autocast::Float32);
  function<"exp2">(t, "exp2", "2 to the power of self.");
  function<"expm1">(t, "expm1", "exp(self) - 1, exact near 0.")
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Each);
  function<"log">(t, "log", "The natural logarithm.", 0.1, 3).autocast(Autocast::None, Autocast::Float32);
  function<"log2">(t, "log2", "The logarithm to base 2.", 0.1, 3).autocast(Autocast::None, Autocast::Float32);
  function<"log10">(t, "log10", "The logarithm to base 10.", 0.1, 3).autocast(Autocast::None, Autocast::Float32);
  function<"log1p">(t, "log1p", "log(1 + self), exact near 0.", -0.9, 2)
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Each);
  function<"sin">(t, "sin", "The sine.").sparse(Sparse::Each);
  function<"cos">(t, "cos", "The cosine.");
  function<"tan">(t, "tan", "The tangent.", -1, 1).autocast(Autocast::None, Autocast::Float32).sparse(Sparse::Each);
  function<"asin">(t, "asin", "The inverse sine.", -0.9, 0.9)
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Each);
  function<"acos">(t, "acos", "The inverse cosine.", -0.9, 0.9).autocast(Autocast::None, Autocast::Float32);
  function<"atan">(t, "atan", "The inverse tangent.").sparse(Sparse::Each);
  function<"sinh">(t, "sinh", "The hyperbolic sine.").autocast(Autocast::None, Autocast::Float32).sparse(Sparse::Each);
  function<"cosh">(t, "cosh", "The hyperbolic cosine.").autocast(Autocast::None, Autocast::Float32);
  function<"tanh">(t, "tanh", "The hyperbolic tangent.").sparse(Sparse::Each);
  function<"asinh">(t, "asinh", "The inverse hyperbolic sine.").sparse(Sparse::Each);
  function<"acosh">(t, "acosh", "The inverse hyperbolic cosine.", 1.1, 3);
  function<"atanh">(t, "atanh", "The inverse hyperbolic tangent.", -0.9, 0.9).sparse(Sparse::Each);
  function<"sqrt">(t, "sqrt", "The square root.", 0.1, 3).sparse(Sparse::Each);
  function<"rsqrt">(t, "rsqrt", "1 / sqrt(self).", 0.1, 3).autocast(Autocast::None, Autocast::Float32);
  function<"erf">(t, "erf", "The error function 2/sqrt(pi) ∫ exp(-t²) dt from 0 to self.").sparse(Sparse::Each);
  function<"erfc">(t, "erfc", "1 - erf(self), exact where it is small.");
  function<"erfinv">(t, "erfinv", "The inverse of erf.", -0.9, 0.9)
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Each);
  function<"lgamma">(t, "lgamma", "The logarithm of |Γ(self)|.", 0.5, 4);
  for (auto [name, of] : {std::pair{"aten::arccos", "aten::acos"},
                          {"aten::arcsin", "aten::asin"},
                          {"aten::arctan", "aten::atan"},
                          {"aten::arccosh", "aten::acosh"},
                          {"aten::arcsinh", "aten::asinh"},
                          {"aten::arctanh", "aten::atanh"},
                          {"aten::special_erf", "aten::erf"},
                          {"aten::special_erfc", "aten::erfc"},
                          {"aten::special_erfinv", "aten::erfinv"},
                          {"aten::special_exp2", "aten::exp2"},
                          {"aten::special_expm1", "aten::expm1"},
                          {"aten::special_log1p", "aten::log1p"},
                          {"aten::special_gammaln", "aten::lgamma"}})
    t.alias(name, of);
}

void add_rounding(Table& t) {
  step<"floor">(t, "floor", "The largest integer that is not above self.").sparse(Sparse::Each);
  step<"ceil">(t, "ceil", "The smallest integer that is not below self.").sparse(Sparse::Each);
  step<"trunc">(t, "trunc", "self without its fraction.").sparse(Sparse::Each);
  step<"round">(t, "round", "The nearest integer; halves go to the even one.").sparse(Sparse::Each);
  t.alias("aten::fix", "aten::trunc");
  t.op("aten::round.decimals(Tensor self, *, int decimals) -> Tensor")
      .doc("The nearest number with this many decimals.")
      .sparse(Sparse::Each)
      .composed_in_opmath([](Value x, Expr decimals) {
        if (!is_floating(dtype_of(x))) {
          BRASA_CHECK(same_size(decimals, 0), "round: decimals of an integer tensor must be 0, got ", decimals);
          return x;
        }
        if (decimals.is(0)) return prim::unary("round", x);
        if (is_less(decimals, 0)) {
          Number scale = power_of_ten(-decimals);
          return prim::unary("round", x / scale) * scale;
        }
        Number scale = power_of_ten(decimals);
        return prim::unary("round", x * scale) / scale;
      })
      .special("decimals", {0})
      .vjp(zero_derivative())
      .samples({{floats(3, 5), 1}, {floats(4).in(-90, 90), -1}});
  t.op("aten::special_round(Tensor self, *, int decimals=0) -> Tensor")
      .doc("The nearest number with this many decimals.")
      .composed([](Value x, Expr decimals) { return call("aten::round.decimals", {x, decimals}); })
      .special("decimals", {0})
      .vjp(zero_derivative())
      .samples({{floats(3, 5), 1}, {floats(4)}});
  t.op("aten::frac(Tensor self) -> Tensor")
      .doc("self - trunc(self).")
      .sparse(Sparse::Each)
      .composed_in_opmath([](Value x) { return floating_only("frac", x) - prim::unary("trunc", x); })
      .vjp(own_derivative([](const Saved& s) { return std::vector{s.ct()}; }))
      .samples({{floats(3, 5)}, {floats(0)}});
}

void add_signs(Table& t) {
  t.op("aten::neg(Tensor self) -> Tensor")
      .doc("-self.")
      .sparse(Sparse::Linear)
      .composed([](Value x) {
        BRASA_CHECK_AS(
            NotImplementedError, dtype_of(x) != DType::Bool,
            "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the `~` or "
            "`logical_not()` operator instead.");
        return -x;
      })
      .samples({{floats(3, 5)}, {ints(4)}, {floats(0)}});
  t.alias("aten::negative", "aten::neg");
  t.op("aten::positive(Tensor self) -> Tensor")
      .doc("self.")
      .sparse(Sparse::Linear)
      .view()
      .composed([](Value x) {
        BRASA_CHECK(dtype_of(x) != DType::Bool, "The `+` operator, on a bool tensor is not supported.");
        return x;
      })
      .samples({{floats(3, 5)}});
  t.op("aten::abs(Tensor self) -> Tensor")
      .doc("|self|; its derivative at 0 is 0.")
      .sparse(Sparse::Each)
      .composed([](Value x) { return magnitude(x); })
      .samples({{floats(3, 5)}, {ints(4).in(-3, 3)}});
  t.alias("aten::absolute", "aten::abs");
  t.op("aten::sign(Tensor self) -> Tensor")
      .doc("-1, 0 or 1.")
      .sparse(Sparse::Each)
      .composed([](Value x) { return where(is_nan(x), zeros_like(x), prim::unary("sign", x)); })
      .vjp(zero_derivative())
      .samples({{floats(3, 5)}, {ints(4).in(-3, 3)}});
  t.op("aten::sgn(Tensor self) -> Tensor")
      .doc("-1, 0 or 1; of a complex number z: z / |z|, or 0.")
      .sparse(Sparse::Each)
      .composed(sgn)
      .samples({{floats(3, 5)}, {ints(4).in(-3, 3)}, {tensor(DType::Complex64, {3})}});
  t.op("aten::signbit(Tensor self) -> Tensor")
      .doc("Is the sign's bit set?")
      .sparse(Sparse::Each)
      .composed([](Value x) { return sign_bit(x); })
      .samples({{floats(3, 5)}, {ints(4).in(-3, 3)}});
  t.op("aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("|self| with the sign of other.")
      .composed([](Value a, Value b) {
        auto [x, y] = promoted_to_float(a, b);
        return where(sign_bit(y), -abs(x), abs(x));
      })
      .samples({{floats(3, 5), floats(5)}, {ints(3), floats(3)}});
  t.op("aten::copysign.Scalar(Tensor self, Scalar other) -> Tensor")
      .out(Out::Cast)
      .doc("|self| with the sign of other.")
      .composed([](Value a, Number b) {
        auto [x, y] = promoted_to_float(a, b);
        return where(sign_bit(y), -abs(x), abs(x));
      })
      .samples({{floats(3, 5), -1.5}, {ints(3), 2}});
  t.op("aten::heaviside(Tensor self, Tensor values) -> Tensor")
      .doc("0 below 0, 1 above, and values at 0.")
      .composed([](Value x, Value values) {
        BRASA_CHECK(dtype_of(x) == dtype_of(values),
                    "heaviside is not yet implemented for tensors with different dtypes, got ", name(dtype_of(x)),
                    " and ", name(dtype_of(values)));
        auto [a, v] = promoted(x, values);
        return where(eq(a, 0), v, convert(gt(a, 0), dtype_of(a)));
      })
      .no_gradient()
      .samples({{floats(3, 5), floats(5)}});
}

void add_simple(Table& t) {
  t.op("aten::reciprocal(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("1 / self.")
      .autocast(Autocast::None, Autocast::Float32)
      .composed_in_opmath([](Value x) { return 1 / x; })
      .vjp(own_derivative([](const Saved& s) { return std::vector{-(s.ct() * conj(s.out() * s.out()))}; }))
      .samples({{floats(3, 5).in(0.5, 2)}, {ints(3).in(1, 4)}});
  t.op("aten::square(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("self².")
      .autocast(Autocast::None, Autocast::Float32)
      .sparse(Sparse::Each)
      .backward_node("PowBackward0")
      .composed_in_opmath([](Value x) {
        if (dtype_of(x) == DType::Bool) x = convert(x, DType::Int64);
        return x * x;
      })
      .samples({{floats(3, 5)}, {ints(3)}});
  t.op("aten::deg2rad(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("Degrees as radians.")
      .sparse(Sparse::Linear)
      .composed_in_opmath([](Value x) { return to_float(real_only("deg2rad", x)) * (kPi / 180); })
      .samples({{floats(3, 5).in(-180, 180)}, {ints(3)}});
  t.op("aten::rad2deg(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("Radians as degrees.")
      .sparse(Sparse::Linear)
      .composed_in_opmath([](Value x) { return to_float(real_only("rad2deg", x)) * (180 / kPi); })
      .samples({{floats(3, 5)}, {ints(3)}});
  t.op("aten::sigmoid(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("1 / (1 + exp(-self)).")
      .composed_in_opmath([](Value x) { return 1 / (1 + exp(-to_float(x))); })
      .vjp(own_derivative([](const Saved& s) { return std::vector{s.ct() * conj(s.out() * (1 - s.out()))}; }))
      .samples({{floats(3, 5)}, {ints(3)}, {floats(2).in(-200, 200)}, {tensor(DType::Complex64, {3})}});
  t.alias("aten::special_expit", "aten::sigmoid");
  t.op("aten::sinc(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("sin(πx)/(πx), and 1 at 0.")
      .composed_in_opmath([](Value v) {
        Value x = to_float(v) * kPi;
        Value safe = where(eq(x, 0), constant_like(x, 1), x);
        return where(eq(x, 0), constant_like(x, 1), sin(safe) / safe);
      })
      .samples({{floats(3, 5)}, {ints(3).in(0, 3)}});
  t.alias("aten::special_sinc", "aten::sinc");
  t.op("aten::logit(Tensor self, float? eps=None) -> Tensor")
      .out(Out::Cast)
      .doc("log(x / (1 - x)), x first limited to [eps, 1 - eps] if eps is given.")
      .composed_in_opmath([](Value v, std::optional<Number> eps) {
        Value x = to_float(real_only("logit", v));
        if (eps) x = where(lt(x, *eps), constant_like(x, *eps), where(gt(x, 1 - *eps), constant_like(x, 1 - *eps), x));
        return log(x / (1 - x));
      })
      .vjp(own_derivative([](const Saved& s) {
        Value x = s.in(0);
        auto eps = s.arg<std::optional<Number>>(1);
        Number low = eps.value_or(0);
        Value outside = logical_or(lt(x, low), gt(x, 1 - low));
        return std::vector{where(outside, constant_like(x, eps ? 0 : std::nan("")), s.ct() / (x * (1 - x)))};
      }))
      .fits("eps")
      .samples({{floats(3, 5).in(0.1, 0.9)}, {floats(5).in(-0.5, 1.5), 0.1}});
  t.alias("aten::special_logit", "aten::logit");
  t.op("aten::special_ndtr(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("The normal distribution function Φ.")
      .composed_in_opmath([](Value v) {
        Value x = to_float(v) * std::sqrt(0.5);
        return where(lt(x, -1), 0.5 * prim::unary("erfc", -x), 0.5 * (1 + erf(x)));
      })
      .samples({{floats(3, 5)}, {ints(3)}});
  t.op("aten::special_entr(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("-x ln x for x > 0, 0 at 0, -inf below.")
      .composed_in_opmath([](Value v) {
        Value x = to_float(v);
        Value safe = where(gt(x, 0), x, constant_like(x, 1));
        Value y = where(gt(x, 0), -(x * log(safe)),
                        where(eq(x, 0), zeros_like(x), constant_like(x, -std::numeric_limits<double>::infinity())));
        return where(is_nan(x), x, y);
      })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{where(is_nan(s.in(0)), s.in(0), s.ct() * (-log(s.in(0)) - 1))}; }))
      .samples({{floats(3, 5).in(0.1, 2)}});
}

void add_gamma(Table& t) {
  t.op("aten::digamma(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("The logarithmic derivative of Γ.")
      .composed_in_opmath([](Value x) { return prim::unary("digamma", to_float(x)); })
      .samples({{floats(3, 5).in(0.5, 4)}, {ints(3).in(1, 4)}});
  t.alias("aten::special_digamma", "aten::digamma");
  t.alias("aten::special_psi", "aten::digamma");
  t.op("aten::mvlgamma(Tensor self, int p) -> Tensor")
      .out(Out::Cast)
      .doc("The logarithm of the multivariate Γ of dimension p.")
      .composed_in_opmath([](Value v, Expr p) {
        BRASA_CHECK(!is_less(p, 1), "mvlgamma: p has to be greater than or equal to 1, got ", p);
        Number terms = 1.0 * Number(ir::Arg(p));
        // The terms lie in front: a loop over them whose length is not known leaves that over elements as it is.
        Value x = to_float(v), i = prim::iota({p}, 0, dtype_of(x)), wide = unsqueeze(x, 0);
        return sum(prim::unary("lgamma", wide - along(i / 2, 0, rank_of(wide))), {0}) +
               terms * (terms - 1) / 4 * std::log(kPi);
      })
      .samples({{floats(3, 5).in(1.5, 4), 3}});
  t.alias("aten::special_multigammaln", "aten::mvlgamma");
}

void add_of_two(Table& t) {
  t.op("aten::atan2(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The angle of the point (other, self).")
      .autocast(Autocast::None, Autocast::Widest)
      .composed_in_opmath([](Value a, Value b) {
        auto [x, y] = promoted_to_float(a, b);
        return prim::binary("atan2", x, y);
      })
      .samples({{floats(3, 5), floats(5)}, {ints(3), ints(3).in(1, 3)}});
  t.alias("aten::arctan2", "aten::atan2");
  t.op("aten::hypot(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("sqrt(self² + other²) without overflow.")
      .composed_in_opmath([](Value a, Value b) {
        auto [x, y] = promoted(a, b);
        floating_only("hypot", x);
        Value p = abs(x), q = abs(y), big = maximum(p, q), small = minimum(p, q);
        Value r = small / where(eq(big, 0), constant_like(big, 1), big);
        Value h = where(eq(big, small), big * std::sqrt(2.0), big * sqrt(1 + r * r));
        double inf = std::numeric_limits<double>::infinity();
        return where(logical_or(eq(p, inf), eq(q, inf)), constant_like(h, inf), h);
      })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{s.ct() * (s.in(0) / s.out()), s.ct() * (s.in(1) / s.out())}; }))
      .samples({{floats(3, 5), floats(5).in(0.5, 2)}});
  t.op("aten::nextafter(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("The next representable number towards other.")
      .composed([](Value a, Value b) {
        auto [x, y] = promoted(a, b);
        DType t = dtype_of(x);
        return is_floating(t) && size_of(t) == 2 ? next_of_16_bits(x, y) : pointwise("nextafter", x, y);
      })
      .vjp(own_derivative([](const Saved& s) {
        return std::vector{where(ne(s.in(0), s.in(1)), s.ct(), zeros_like(s.ct())), zeros_like(s.ct())};
      }))
      .samples({{floats(3, 5), floats(5)}});
  t.op("aten::logaddexp(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("log(exp(self) + exp(other)).")
      .composed_in_opmath([](Value a, Value b) {
        auto [x, y] = promoted(a, b);
        if (is_complex(dtype_of(x))) {
          Value first = ge(real(x), real(y));
          Value large = where(first, x, y), small = where(first, y, x);
          return large + log1p(exp(small - large));
        }
        Value p = to_float(x), q = to_float(y), d = where(eq(p, q), zeros_like(p), -abs(p - q));
        return maximum(p, q) + log1p(exp(d));
      })
      .vjp(own_derivative([](const Saved& s) {
        return std::vector{s.ct() / conj(1 + exp(s.in(1) - s.in(0))), s.ct() / conj(1 + exp(s.in(0) - s.in(1)))};
      }))
      .samples({{floats(3, 5), floats(5)}, {ints(3).in(0, 2), ints(3).in(0, 2)}});
  t.op("aten::logaddexp2(Tensor self, Tensor other) -> Tensor")
      .out(Out::Cast)
      .doc("log2(2^self + 2^other).")
      .composed_in_opmath([](Value a, Value b) {
        auto [p, q] = promoted_to_float(a, b);
        Value d = where(eq(p, q), zeros_like(p), -abs(p - q));
        return maximum(p, q) + log1p(prim::unary("exp2", d)) * (1 / std::log(2.0));
      })
      .vjp(own_derivative([](const Saved& s) {
        return std::vector{s.ct() / (1 + prim::unary("exp2", s.in(1) - s.in(0))),
                           s.ct() / (1 + prim::unary("exp2", s.in(0) - s.in(1)))};
      }))
      .samples({{floats(3, 5), floats(5)}, {ints(3).in(0, 2), ints(3).in(0, 2)}});
  t.op("aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor")
      .doc("self * 2^other.")
      .composed([](Value a, Value b) { return a * prim::unary("exp2", to_float(b)); })
      .samples({{floats(3, 5), ints(5).in(-3, 3)}});
}

Value x_log(const char* log, Value a, Value b) {
  auto [x, y] = promoted_to_float(real_only("xlogy", a), real_only("xlogy", b));
  return where(is_nan(y), y, where(eq(x, 0), zeros_like(x), x * prim::unary(log, y)));
}

// d/dx is log y, but 0 where x = 0 and y is not inside log's domain; d/dy is x / y (or x / (y + 1)).
template <bool plus_one>
std::vector<Value> x_log_derivative(const Saved& s) {
  auto value = [&](size_t i) {
    if (auto* v = s.args[i].get_if<Value>()) return convert(*v, dtype_of(s.out()));
    return scalar(Number(s.args[i]), dtype_of(s.out()));
  };
  Value x = value(0), y = value(1);
  Value dx = where(logical_and(eq(x, 0), le(y, plus_one ? -1 : 0)), zeros_like(s.ct()),
                   x_log(plus_one ? "log1p" : "log", s.ct(), y));
  return {dx, s.ct() * x / (plus_one ? y + 1 : y)};
}

template <bool plus_one>
void add_x_log(Table& t, const char* name, const char* tensor, const char* scalar_other, const char* scalar_self) {
  static constexpr const char* log = plus_one ? "log1p" : "log";
  const char* doc =
      plus_one ? "self * log(1 + other), and 0 where self is 0." : "self * log(other), and 0 where self is 0.";
  t.op(str("aten::", name, tensor, "(Tensor self, Tensor other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value a, Value b) { return x_log(log, a, b); })
      .vjp(own_derivative(x_log_derivative<plus_one>))
      .samples({{floats(3, 5), floats(5).in(0.5, 2)}, {ints(3), ints(3).in(1, 3)}});
  t.op(str("aten::", name, scalar_other, "(Tensor self, Scalar other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Value a, Number b) {
        auto [x, y] = promoted_to_float(a, b);
        return x_log(log, x, y);
      })
      .vjp(own_derivative(x_log_derivative<plus_one>))
      .samples({{floats(3, 5), 1.5}});
  t.op(str("aten::", name, scalar_self, "(Scalar self, Tensor other) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath([](Number a, Value b) {
        auto [y, x] = promoted_to_float(b, a);
        return x_log(log, x, y);
      })
      .vjp(own_derivative(x_log_derivative<plus_one>))
      .samples({{1.5, floats(3, 5).in(0.5, 2)}});
}

}  // namespace

void add_math(Table& t) {
  add_functions(t);
  add_rounding(t);
  add_signs(t);
  add_simple(t);
  add_gamma(t);
  add_of_two(t);
  add_x_log<false>(t, "xlogy", ".Tensor", ".Scalar_Other", ".Scalar_Self");
  add_x_log<true>(t, "special_xlog1py", "", ".other_scalar", ".self_scalar");
  t.alias("aten::special_xlogy", "aten::xlogy.Tensor");
  t.alias("aten::special_xlogy.other_scalar", "aten::xlogy.Scalar_Other");
  t.alias("aten::special_xlogy.self_scalar", "aten::xlogy.Scalar_Self");
}

}  // namespace brasa::ops
