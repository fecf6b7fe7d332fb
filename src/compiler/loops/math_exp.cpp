#include <cmath>
#include <optional>
#include <vector>

#include "compiler/loops/math_builder.h"
#include "compiler/loops/math_coefficients.h"
#include "compiler/loops/ops.h"
#include "ops/table.h"

// Exponentials, logarithms and what follows from them. Reductions subtract multiples of ln 2 in two parts, of which the
// first has so few bits that its product with the exponent is exact (Cody & Waite 1980).
namespace brasa::compiler::math {
namespace {

struct Limits {
  double ln2_high, ln2_low, log10_2_high, log10_2_low;
  double exp_low, exp_high;  // beyond, exp is 0 or infinity
  double exp_normal;         // from here on, it is twice the least normal number or more
  // Here 2^n is the product of two zeros: one that rounds to 0 takes a hundred times as long, and masked scores are -inf.
  double exp_zero;
  int mantissa, bias;
  double min_normal;
};
constexpr Limits kFloat{
    0x1.62ep-1, 0x1.0bfbe8e7bcd5ep-15, 0x1.344p-2, 0x1.3509f79fef312p-18, -104, 89, -86.643, -176.06, 23, 127,
    0x1p-126};
constexpr Limits kDouble{0x1.62e42feep-1,
                         0x1.a39ef35793c76p-33,
                         0x1.34413508p-2,
                         0x1.f79fef311f12bp-34,
                         -746,
                         710,
                         -707.703,
                         -1418.2,
                         52,
                         1023,
                         0x1p-1022};
const Limits& limits(X x) { return x.is_double() ? kDouble : kFloat; }

constexpr double kLog2e = 1.4426950408889634, kLog10e = 0.43429448190325182, kLn2 = 0.69314718055994531;

// The integer n nearest to x · factor, and x · factor + 3/2 · 2^mantissa + offset, whose bits end in n + offset.
struct Nearest {
  X number, sum;
};
Nearest nearest(X x, double factor, int64_t offset) {
  double integers = std::ldexp(1.5, limits(x).mantissa) + static_cast<double>(offset);
  X sum = x * factor + integers;
  return {sum - integers, sum};
}

// 2^n for bits that end in n + bias, where that is a normal number.
X power(X bits) { return from_bits(shl(bits, bits.type() == DType::Int64 ? 52 : 23)); }

// x - n ln 2 / parts.
X less_ln2(X x, X n, int parts = 1) {
  const Limits& l = limits(x);
  return x - n * (l.ln2_high / parts) - n * (l.ln2_low / parts);
}

// e^r · factor for |r| <= ln 2 / 2.
X exp_reduced(X r, double factor = 1) { return factor + r * (factor + r * polynomial(r, kExp32, kExp64, factor)); }

// 2^f for |f| <= 1/2.
X exp2_reduced(X f) { return 1 + f * (kLn2 + f * polynomial(f, kExp32, kExp64, kLn2 * kLn2, kLn2)); }

// e^x where that is a normal number, or infinite because x = exp_high.
X exp_in_range(X x) {
  if (Context::current().has.scales) {
    X n = nearest(x, kLog2e, 0).number;
    return scaled(exp_reduced(less_ln2(x, n)), n);
  }
  // Half of 2^n is a number where the result is just below the largest one.
  Nearest n = nearest(x, kLog2e, limits(x).bias - 1);
  return exp_reduced(less_ln2(x, n.number), 2) * power(bits(n.sum));
}

// The integer nearest to x · factor for `scale`, which needs the number or the bits of the sum.
Nearest nearest_exponent(X x, double factor) {
  return nearest(x, factor, Context::current().has.scales ? 0 : 2 * limits(x).bias);
}
// p · 2^n where the result may be denormal or infinite: by an instruction, or by the two halves of n + 2 · bias, so that one product is exact.
X scale(X p, Nearest n) {
  if (Context::current().has.scales) return scaled(p, n.number);
  X all = bits(n.sum), half = shr(all, 1);
  return p * power(half) * power(all - half);
}

// e^rest · 2^exponent of `reduced`(x), which is 0 for x below `low` and infinite beyond `high`. No result is rounded to 0, which takes a hundred
// times as long: the exponent is minus infinity there, or that of `zero`.
struct Reduced {
  X rest;
  Nearest exponent;
};
template <class F>
X exponential(X x, double low, double high, double zero, F reduced) {
  bool scales = Context::current().has.scales;
  X vanishes = x < low, near = at_most(x, high);
  Reduced r = reduced(scales ? at_least(near, low) : select(vanishes, like(x, zero), near));
  if (scales) r.exponent.number = select(vanishes, -infinity(x), r.exponent.number);
  return scale(exp_reduced(r.rest), r.exponent);
}

struct Split {
  X exponent;  // as a float
  X fraction;  // m - 1 for the m in [sqrt 1/2, sqrt 2) with x = m 2^exponent
};
Split split(X x) {
  const Limits& l = limits(x);
  X tiny = x < l.min_normal;
  double up = std::ldexp(1.0, l.mantissa + 2);
  X b = bits(select(tiny, x * up, x));
  X root = like(b, x.is_double() ? 0x3fe6a09e667f3bcd : 0x3f3504f3);
  X e = shr(b - root, l.mantissa);
  X m = from_bits(b - shl(e, l.mantissa));
  X exponent = convert(e, x.type()) - select(tiny, like(x, l.mantissa + 2), like(x, 0));
  return {exponent, m - 1};
}

// log(1 + f) for 1 + f in [sqrt 1/2, sqrt 2), and what is to be added to it first.
X log_reduced(X f, X correction) {
  if (!f.is_double()) {
    X z = f * f;
    return f + (correction - 0.5 * z + f * z * polynomial(f, kLog32));
  }
  // With s = f / (2 + f): log(1 + f) = 2 atanh s = f - f²/2 + s (f²/2 + R(s²)).
  X s = f / (2 + f), z = s * s, h = 0.5 * f * f;
  return f + (correction - (h - s * (h + z * polynomial(z, kLog64))));
}

// Fills in zero, infinity, negative numbers and NaN.
X log_special(X x, X r) {
  X inside = (x > 0.0) & (x < infinity(x));
  return select(inside, r, select(x == 0.0, -infinity(x), select(x > 0.0, x, nan(x))));
}

// log of a positive normal or denormal number.
X log_positive(X x) {
  const Limits& l = limits(x);
  Split s = split(x);
  return s.exponent * l.ln2_high + log_reduced(s.fraction, s.exponent * l.ln2_low);
}

// e^x - 1 where e^x does not overflow.
X expm1_moderate(X x) {
  // In halves, so that 2^n may be just beyond the largest number.
  Nearest n = nearest(x, kLog2e, limits(x).bias - 1);
  X r = less_ln2(x, n.number), h = power(bits(n.sum));
  X p = r + r * r * polynomial(r, kExpm1_32, kExpm1_64);
  return 2.0 * (h * p + (h - 0.5));
}

// e^2a - 1 where e^2a is far from overflow, for what it is divided by itself plus 2: where n is large its errors vanish there, so that a
// float32 needs ln 2 in one part. The smallest numbers give 2a.
X expm1_of_twice(X a) {
  Nearest n = nearest(a, 2 * kLog2e, limits(a).bias + 1);
  X r = a.is_double() ? less_ln2(a, n.number, 2) : a - n.number * (kLn2 / 2), twice = power(bits(n.sum));
  X p = r + r * r * polynomial(r, kExpm1_32, kExpm1_64, 2, 2);
  return twice * p + (0.5 * twice - 1);
}

// e^x by a GPU's instruction for powers of 2. The sum with 3/2 * 2^23 ends in the nearest integer n, to which 127 is added, so that its
// bits give 2^n; where that would be no normal number, n stays the last one that is, and the rest r grows.
X exp_by_instruction(X x) {
  constexpr double kIntegers = 0x1.8p23 + 127;
  X t = at_most(at_least(x * kLog2e + kIntegers, kIntegers - 126), kIntegers + 127);
  X r = less_ln2(x, t - kIntegers);
  return op(ScalarOp::Exp2, r * kLog2e) * from_bits(shl(bits(t), 23));
}

// Of x = select(y < least, -infinity, y): y and the condition, where e^y is a normal number otherwise.
struct Flushed {
  X y, condition;
};
std::optional<Flushed> flushed(X x) {
  auto number = [](ir::Value v) -> const double* {
    return is_constant(v.node) ? v.node->args[0].get_if<double>() : nullptr;
  };
  if (scalar_op_of(x.v.node->op) != ScalarOp::Select) return std::nullopt;
  auto condition = x.v.node->arg<ir::Value>(0), y = x.v.node->arg<ir::Value>(2);
  if (scalar_op_of(condition.node->op) != ScalarOp::Lt || condition.node->arg<ir::Value>(0) != y) return std::nullopt;
  const double *least = number(condition.node->arg<ir::Value>(1)), *instead = number(x.v.node->arg<ir::Value>(1));
  if (!least || !instead || *least < limits(x).exp_normal || *instead > 0 || !std::isinf(*instead)) return std::nullopt;
  return Flushed{{y}, {condition}};
}

bool by_instructions(X x) { return Context::current().has.gpu && !x.is_double(); }

}  // namespace

X exp(X x) {
  const Context& context = Context::current();
  auto f = flushed(x);
  // At most (|x| + 2) / 2^23 off, relatively: of numbers below 88 a tenth of a reduced float's last bit, of what is added to a 1 less than the
  // sum is. The instruction gives 0 in place of denormal numbers.
  if (by_instructions(x) && !context.strict && (context.coarse || f))
    return op(ScalarOp::Exp2, (f ? f->y : x) * kLog2e);
  if (by_instructions(x)) return exp_by_instruction(x);
  const Limits& l = limits(x);
  if (f) {
    return select(f->condition, like(x, 0), exp_in_range(at_most(at_least(f->y, l.exp_normal), l.exp_high)));
  }
  return exponential(x, l.exp_low, l.exp_high, l.exp_zero, [](X y) {
    Nearest n = nearest_exponent(y, kLog2e);
    return Reduced{less_ln2(y, n.number), n};
  });
}

X one_plus_exp(X x) {
  // What is less than half of the last bit of 1 may be any such number.
  if (by_instructions(x)) return 1 + exp(x);
  const Limits& l = limits(x);
  return 1 + exp_in_range(at_most(at_least(x, -l.mantissa - 2), l.exp_high));
}

// 2 / (1 + e^-2x): as small as it is below 0, where a difference would have lost its bits.
X one_plus_tanh(X x) { return 2.0 * reciprocal(1 + op(ScalarOp::Exp2, x * (-2 * kLog2e))); }

X exp_of_sum(X high, X low) {
  // What is multiplied by this has errors of its own: the terms are added to 1 last, which leaves an eighth of a last bit less.
  Nearest n = nearest_exponent(high, kLog2e);
  X r = less_ln2(high, n.number) + low;
  return scale(1 + (r + r * r * polynomial(r, kExp32, kExp64)), n);
}

X exp2(X x) {
  double low = x.is_double() ? -1080 : -152, high = x.is_double() ? 1025 : 129, zero = x.is_double() ? -2046 : -254;
  return exponential(x, low, high, zero, [](X y) {
    Nearest n = nearest_exponent(y, 1);
    return Reduced{(y - n.number) * kLn2, n};
  });
}

X exp2_of_normal(X x) {
  if (by_instructions(x)) return op(ScalarOp::Exp2, x);
  Nearest n = nearest(x, 1, limits(x).bias);
  return exp2_reduced(x - n.number) * power(bits(n.sum));
}

X expm1(X x) {
  const Limits& l = limits(x);
  X y = at_least(at_most(x, l.exp_high), x.is_double() ? -40 : -20);
  // The smallest numbers and -0 are their own result.
  return select(abs(x) < std::ldexp(1.0, -l.mantissa - 3), x, expm1_moderate(y));
}

X log(X x) { return log_special(x, log_positive(x)); }

X log2(X x) {
  Split s = split(x);
  return log_special(x, s.exponent + log_reduced(s.fraction, like(x, 0)) * kLog2e);
}

X log10(X x) {
  const Limits& l = limits(x);
  Split s = split(x);
  X r = log_reduced(s.fraction, like(x, 0)) * kLog10e + s.exponent * l.log10_2_low;
  return log_special(x, s.exponent * l.log10_2_high + r);
}

X log1p(X x) {
  X u = 1 + x;
  // What rounding took from 1 + x comes back to first order.
  X lost = x - (u - 1);
  X r = log_positive(u) + lost / u;
  r = log_special(u, r);
  return select(abs(x) < std::ldexp(1.0, -limits(x).mantissa - 2), x, r);
}

X rsqrt(X x) { return by_instructions(x) ? op(ScalarOp::Rsqrt, x) : 1.0 / sqrt(x); }

namespace {

// log x for positive x, with about 65 bits.
Pair log_pair(X x) {
  constexpr double third_high = 0x1.5555555555555p-1, third_low = 0x1.5555555555555p-55;  // 2/3
  Split split_x = split(x);
  Exactly exactly;
  X f = split_x.fraction, e = split_x.exponent;
  X u = 2 + f, u_low = f - (u - 2);
  X s = f / u;
  Pair su = two_product(s, u);
  X s_low = (((f - su.high) - su.low) - s * u_low) / u;
  Pair zz = two_product(s, s);
  X z_low = zz.low + 2.0 * s * s_low;
  // 2 atanh s = 2 s + (2/3) s³ + s⁵ R(s²), the first two terms with two words each.
  Pair t = two_product(zz.high, like(x, third_high));
  X t_low = t.low + (zz.high * third_low + z_low * third_high);
  Pair c = two_product(s, t.high);
  X c_low = c.low + (s * t_low + s_low * t.high);
  X tail = s * zz.high * zz.high * polynomial(zz.high, kLogTail64);
  Pair a = two_sum(e * kDouble.ln2_high, 2.0 * s);
  Pair b = two_sum(a.high, c.high);
  X low = ((a.low + b.low) + (2.0 * s_low + c_low)) + (e * kDouble.ln2_low + tail);
  X high = b.high + low;
  return {high, low - (high - b.high)};
}

// |x|^y for float64.
X pow_positive(X x, X y) {
  // Larger exponents overflow all the same, or the base is 1; the products below must not.
  y = at_least(at_most(y, 0x1p66), -0x1p66);
  Pair l = log_pair(x);
  Pair p = two_product(y, l.high);
  X low = p.low + y * l.low;
  X outside = (p.high > 720.0) | (p.high < -760.0);
  X high = at_least(at_most(p.high, 720), -760);
  low = select(outside, like(low, 0), low);
  return exp_of_sum(high, low);
}

}  // namespace

X pow(X x, X y) {
  X a = abs(x);
  X r;
  if (x.is_double()) {
    r = pow_positive(a, y);
  } else {
    X product = convert(y, DType::Float64) * log_positive(convert(a, DType::Float64));
    r = convert(exp(product), DType::Float32);
  }
  X zero = like(x, 0), one = like(x, 1), inf = infinity(x);
  X grows = (a > one) == (y > zero);
  // Bases 0 and infinity, and infinite exponents: 0, 1 or infinity.
  X extreme = (a == zero) | (a == inf) | (abs(y) == inf);
  r = select(extreme, select(grows, inf, zero), r);
  r = select(extreme & (a == one), one, r);
  X whole = trunc(y) == y, half = 0.5 * y, odd = whole & (trunc(half) != half);
  X negative = bits(x) < like(bits(x), 0);
  r = select(negative & odd, -r, r);
  r = select((x < zero) & !whole & (a != inf), nan(x), r);
  r = select(is_nan(x) | is_nan(y), nan(x), r);
  return select((x == one) | (y == zero), one, r);
}

X sinh(X x) {
  const Limits& l = limits(x);
  X a = abs(x), sign = sign_bits(x);
  X e = expm1_moderate(at_most(a, l.exp_high - 2));
  X small = 0.5 * (e + e / (e + 1));
  // e^a / 2 where e^a alone would overflow.
  X w = exp(0.5 * a), large = (0.5 * w) * w;
  X r = select(a < l.exp_high - 3, small, large);
  return flip_sign(select(a < std::ldexp(1.0, -l.mantissa), a, r), sign);
}

X cosh(X x) {
  const Limits& l = limits(x);
  X a = abs(x);
  X e = exp(at_most(a, l.exp_high - 2));
  X w = exp(0.5 * a), large = (0.5 * w) * w;
  return select(a < l.exp_high - 3, 0.5 * e + 0.5 / e, large);
}

X tanh(X x) {
  X a = abs(x), sign = sign_bits(x);
  if (by_instructions(x)) {
    X z = a * a, small = a + a * z * polynomial(z, kTanh32);
    X large = 1 - 2.0 * reciprocal(op(ScalarOp::Exp2, a * (2 * kLog2e)) + 1);
    return flip_sign(select(a < 0.625, small, large), sign);
  }
  X e = expm1_of_twice(at_most(a, x.is_double() ? 22 : 10));
  return flip_sign(e / (e + 2), sign);
}

X asinh(X x) {
  X a = abs(x), s = a * a;
  X small = log1p(a + s / (1 + sqrt(s + 1)));
  X large = log(a) + kLn2;
  return flip_sign(select(a < 0x1p28, small, large), sign_bits(x));
}

X acosh(X x) {
  X t = x - 1;
  X small = log1p(t + sqrt(2.0 * t + t * t));
  X large = log(x) + kLn2;
  return select(x >= 1.0, select(x < 0x1p28, small, large), nan(x));
}

X atanh(X x) {
  X a = abs(x);
  return flip_sign(0.5 * log1p(2.0 * a / (1 - a)), sign_bits(x));
}

}  // namespace brasa::compiler::math
