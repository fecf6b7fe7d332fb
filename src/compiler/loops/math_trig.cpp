#include "compiler/loops/math_builder.h"
#include "compiler/loops/math_coefficients.h"

namespace brasa::compiler::math {
namespace {

// π/2 in two parts of 33 bits and the rest.
constexpr double kHalfPi1 = 0x1.921fb544p+0, kHalfPi2 = 0x1.0b4611a6p-34, kHalfPi3 = 0x1.3198a2e037073p-69;
constexpr double kHalfPi = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;
constexpr double kTwoOverPi = 0.63661977236758134;
// In three parts of 11 bits and the rest, for float32.
constexpr double kShortHalfPi[] = {0x1.92p+0, 0x1.fbp-12, 0x1.51p-22, 0x1.0b4611a626331p-34};
constexpr double kNear = 0x1p13;  // up to which products of quarters of a turn with them are exact

// x = quadrant π/2 + rest with |rest| <= π/4, for x >= 0.
struct Reduced {
  X rest;
  X quadrant;  // integer; its last two bits count
};

constexpr int64_t kWord = 0xffffffff;

X word(X x) { return x & constant(kWord, DType::Int64); }
X high_word(X x) { return word(shr(x, 32)); }

// 32-bit words of 2/π from bit `start` on, which may point into the zeros before the binary point.
std::vector<X> two_over_pi(X start, int words) {
  LoopBuilder& b = Context::current().b;
  std::vector<int64_t> bits{0, 0};
  bits.insert(bits.end(), std::begin(kTwoOverPiWords), std::end(kTwoOverPiWords));
  ir::Value table = b.table(bits, DType::Int64);
  X q = shr(start, 5), shift = start & like(start, 31);
  auto extent = static_cast<int64_t>(bits.size());
  // Where the path is not taken the exponent may be anything.
  X first = op(ScalarOp::Min, op(ScalarOp::Max, q, like(q, 0)), like(q, extent - words - 1));
  ir::Expr at = b.bind(first.v, extent - words);
  std::vector<X> raw, out;
  for (int i = 0; i <= words; ++i) raw.push_back({b.load(table, at + i)});
  for (int i = 0; i < words; ++i) {
    X pair = op(ScalarOp::BitOr, shl(raw[i], 32), raw[i + 1]);
    out.push_back(high_word(op(ScalarOp::Shl, pair, shift)));
  }
  return out;
}

// Payne & Hanek 1983: of the product x · 2/π only the bits around the binary point are formed. x = m 2^e with an integer
// m; the bits of 2/π that give multiples of 4 are left out.
Reduced reduce_huge(X x) {
  X b = bits(x);
  if (!x.is_double()) {
    X e = convert(shr(b, 23), DType::Int64) - constant(int64_t{150}, DType::Int64);
    X m = convert((b & like(b, 0x7fffff)) | like(b, 0x800000), DType::Int64);
    // In units of 2^-62 modulo 4.
    std::vector<X> w = two_over_pi(e + like(e, 64 - 2), 3);
    X p = shl(m * w[0], 32) + m * w[1] + high_word(m * w[2]);
    X n = shr(p + like(p, int64_t{1} << 61), 62);
    X rest = convert(p - shl(n, 62), DType::Float64) * (kHalfPi * 0x1p-62);
    return {rest, convert(n, DType::Int32)};
  }
  X e = shr(b, 52) - like(b, 1075);
  X m = (b & like(b, 0xfffffffffffff)) | like(b, 0x10000000000000);
  X m0 = word(m), m1 = high_word(m);
  constexpr int kWords = 6;
  std::vector<X> w = two_over_pi(e + like(e, 64 - 2), kWords);
  // Long multiplication by columns of 32 bits, modulo 2^192, from the last word on.
  std::vector<X> low_products, high_products, limbs(kWords);
  for (X a : w) {
    low_products.push_back(m0 * a);
    high_products.push_back(m1 * a);
  }
  X carry = like(m, 0);
  for (int k = kWords; k-- > 0;) {
    X column = carry + word(low_products[k]);
    if (k + 1 < kWords) column = column + high_word(low_products[k + 1]) + word(high_products[k + 1]);
    if (k + 2 < kWords) column = column + high_word(high_products[k + 2]);
    limbs[k] = word(column);
    carry = high_word(column);
  }
  X top = shl(limbs[0], 32) | limbs[1];
  X next = (shl(limbs[2], 21) | shr(limbs[3], 11));  // the 53 bits after `top`
  X n = shr(top + like(top, int64_t{1} << 61), 62);
  X high = convert(top - shl(n, 62), DType::Float64), low = convert(next, DType::Float64);
  return {(high + low * 0x1p-53) * (kHalfPi * 0x1p-62), n};
}

Reduced reduce_moderate(X x) {
  X wide = convert(x, DType::Float64);
  X n = round(wide * kTwoOverPi);
  X rest = wide - n * kHalfPi1 - n * kHalfPi2 - n * kHalfPi3;
  return {convert(rest, x.type()), convert(n, bits_type(x.type()))};
}

// x - n unit π/2 in float32, where a whole n has so few bits that only the sum's `high` is rounded; `low` is the rest.
Pair less_half_pis(X x, X n, double unit) {
  const double* part = kShortHalfPi;
  X r = x - n * (unit * part[0]) - n * (unit * part[1]);
  X third = n * (unit * part[2]), s = r - third;
  X error = (r - s) - third;
  return {s, error - n * (unit * part[3])};
}

Reduced reduce_near(X x) {
  X n = round(x * kTwoOverPi);
  Pair r = less_half_pis(x, n, 1);
  return {r.high + r.low, convert(n, DType::Int32)};
}

// f of the reduced |x|; NaN for infinity and NaN.
template <class F>
X of_far(X a, F f) {
  // The products with the first parts of π/2 are exact up to here.
  X huge = a > 0x1p19;
  Reduced far = reduce_huge(a);
  far.rest = convert(far.rest, a.type()) + (a - a);
  return unlikely(huge, f(far), f(reduce_moderate(a)));
}

template <class F>
X of_reduced(X x, F f) {
  X a = abs(x);
  return x.is_double() ? of_far(a, f) : unlikely(a > kNear, of_far(a, f), f(reduce_near(a)));
}

X sin_reduced(X r) {
  X z = r * r;
  return r + r * z * polynomial(z, kSin32, kSin64);
}

X cos_reduced(X r) {
  X z = r * r, h = 0.5 * z, w = 1 - h;
  return w + (((1 - w) - h) + z * z * polynomial(z, kCos32, kCos64));
}

// sin(rest + quadrant π/2).
X sin_of(Reduced a) {
  X q = a.quadrant;
  X value = select((q & like(q, 1)) == like(q, 0), sin_reduced(a.rest), cos_reduced(a.rest));
  X negative = shl(q & like(q, 2), a.rest.is_double() ? 62 : 30);
  return flip_sign(value, negative);
}

// asin |x|; where |x| is large, half of acos |x|.
struct Arc {
  X large, value;
};
Arc arc(X x) {
  X a = abs(x), large = a > 0.5;
  X z = select(large, 0.5 * (1 - a), a * a), s = select(large, sqrt(z), a);
  return {large, s + s * (z * polynomial(z, kAsin32, kAsin64))};
}

X atan_reduced(X t) {
  X z = t * t;
  return t + t * z * polynomial(z, kAtan32, kAtan64);
}

// The parts of a constant for a dtype.
Pair parts(X x, double high, double low) {
  if (x.is_double()) return {like(x, high), like(x, low)};
  auto f = static_cast<float>(high);
  return {like(x, double{f}), like(x, high - double{f} + low)};
}

}  // namespace

X sin(X x) {
  X a = abs(x);
  if (x.is_double()) return flip_sign(of_far(a, sin_of), sign_bits(x));
  // By half turns, which need one polynomial. What is small is added last: the processor waits for the chain of operations.
  X n = round(a * (kTwoOverPi / 2));
  auto [r, low] = less_half_pis(a, n, 2);
  X z = r * r, t = z * polynomial(z, kSinHalf32);
  X near = r + (r * t + low * (1 - z * (0.5 - z * (1.0 / 24))));
  return flip_sign(unlikely(a > kNear, of_far(a, sin_of), flip_sign(near, shl(convert(n, DType::Int32), 31))),
                   sign_bits(x));
}

X cos(X x) {
  return of_reduced(x, [](Reduced a) {
    a.quadrant = a.quadrant + like(a.quadrant, 1);
    return sin_of(a);
  });
}

X tan(X x) {
  X r = of_reduced(x, [](Reduced a) {
    X s = sin_reduced(a.rest), c = cos_reduced(a.rest);
    X odd = (a.quadrant & like(a.quadrant, 1)) != like(a.quadrant, 0);
    return select(odd, -c, s) / select(odd, s, c);
  });
  return flip_sign(r, sign_bits(x));
}

X asin(X x) {
  auto [large, r] = arc(x);
  Pair half_pi = parts(x, kHalfPi, kHalfPiLow);
  return flip_sign(select(large, half_pi.high - (2.0 * r - half_pi.low), r), sign_bits(x));
}

X acos(X x) {
  auto [large, r] = arc(x);
  Pair half_pi = parts(x, kHalfPi, kHalfPiLow);
  X near = 2.0 * r;
  X far = 2.0 * half_pi.high - (near - 2.0 * half_pi.low);
  X middle = half_pi.high - (flip_sign(r, sign_bits(x)) - half_pi.low);
  return select(large, select(x > 0.0, near, far), middle);
}

X atan(X x) {
  constexpr double tan_eighth = 0.41421356237309503, tan_three_eighths = 2.4142135623730949;
  X a = abs(x);
  X beyond = a > tan_three_eighths, middle = a > tan_eighth;
  X t = select(beyond, like(x, -1), select(middle, a - 1, a)) / select(beyond, a, select(middle, a + 1, like(x, 1)));
  Pair half = parts(x, kHalfPi, kHalfPiLow), quarter = parts(x, kHalfPi / 2, kHalfPiLow / 2);
  X zero = like(x, 0);
  X r = atan_reduced(t) + select(beyond, half.low, select(middle, quarter.low, zero));
  r = r + select(beyond, half.high, select(middle, quarter.high, zero));
  return flip_sign(r, sign_bits(x));
}

X atan2(X y, X x) {
  constexpr double tan_eighth = 0.41421356237309503;
  X a = abs(x), b = abs(y);
  X steep = b > a;
  X high = select(steep, b, a), low = select(steep, a, b);
  // Out of the way of overflow.
  X factor = select(high > 0x1p100, like(x, 0x1p-30), like(x, 1));
  high = high * factor;
  low = low * factor;
  X infinite = low == infinity(x);
  X middle = (low > high * tan_eighth) | infinite;
  X t = select(middle, low - high, low) / select(middle, low + high, high);
  t = select(high == 0.0, like(x, 0), t);
  t = select(infinite, like(x, 0), t);
  Pair half = parts(x, kHalfPi, kHalfPiLow), quarter = parts(x, kHalfPi / 2, kHalfPiLow / 2);
  X zero = like(x, 0);
  X r = (atan_reduced(t) + select(middle, quarter.low, zero)) + select(middle, quarter.high, zero);
  r = select(steep, half.high - (r - half.low), r);
  X negative = bits(x) < like(bits(x), 0);
  r = select(negative, 2.0 * half.high - (r - 2.0 * half.low), r);
  r = flip_sign(r, sign_bits(y));
  return select(is_nan(x) | is_nan(y), nan(x), r);
}

}  // namespace brasa::compiler::math
