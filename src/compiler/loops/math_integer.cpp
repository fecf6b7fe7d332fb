#include <algorithm>

#include "compiler/loops/math_builder.h"

// Remainders, integer powers and random bits: exact operations made of integer arithmetic.
namespace brasa::compiler::math {
namespace {

// a b mod m for 0 <= a, b < m < 2^53: the quotient is estimated in floating point, and wrapping products then give the
// rest within a few multiples of m.
X multiply_modulo(X a, X b, X m) {
  X fa = convert(a, DType::Float64), fb = convert(b, DType::Float64), fm = convert(m, DType::Float64);
  X q = convert(fa * fb / fm, DType::Int64);
  X r = a * b - q * m;
  X q2 = convert(convert(r, DType::Float64) / fm, DType::Int64);
  r = r - q2 * m;
  r = select(r < like(r, 0), r + m, r);
  return select(r >= m, r - m, r);
}

// |x| mod |y| for finite positive doubles, by way of x = mx 2^ex, y = my 2^ey: mx (2^(ex - ey) mod my).
X rem_far(X x, X y) {
  auto split = [](X v) {
    X b = bits(v), e = shr(b, 52), f = b & like(b, 0xfffffffffffff);
    X normal = e > like(e, 0);
    return Pair{select(normal, f | like(f, 0x10000000000000), f), op(ScalarOp::Max, e, like(e, 1))};
  };
  Pair a = split(x), b = split(y);
  X m = op(ScalarOp::Max, b.high, like(b.high, 1));
  X distance = op(ScalarOp::Max, a.low - b.low, like(a.low, 0));
  X power = rem(like(m, 1), m);
  for (int bit = 11; bit >= 0; --bit) {
    power = multiply_modulo(power, power, m);
    X set = (shr(distance, bit) & like(distance, 1)) != like(distance, 0);
    X twice = power + power;
    twice = select(twice >= m, twice - m, twice);
    power = select(set, twice, power);
  }
  X r = multiply_modulo(rem(a.high, m), power, m);
  // r 2^ey, where ey may be that of denormals: two exact steps.
  X e = b.low - like(b.low, 1075), half = shr(e, 1);
  return convert(r, DType::Float64) * power_of_two(half, DType::Float64) * power_of_two(e - half, DType::Float64);
}

// Of doubles that have so many digits.
X rem(X x, X y, int digits) {
  X a = abs(x), b = abs(y), near, easy;
  // The quotient is right or one off.
  X q = trunc(a / b);
  if (digits == 24) {
    near = a - q * b;  // exact
    easy = a < b * 0x1p29;
  } else {
    Exactly exactly;
    Pair p = two_product(q, b);
    near = (a - p.high) - p.low;
    // The halves of the product must neither overflow nor be denormal.
    easy = (a < b * 0x1p50) & (a < 0x1p960) & (b > 0x1p-900);
  }
  near = select(near < 0.0, near + b, near);
  near = select(near >= b, near - b, near);
  // Smaller ones are done already.
  X r = unlikely(!easy, rem_far(a, b), near);
  r = select(a < b, a, r);
  r = select((b > 0.0) & (a < infinity(x)), r, nan(x));
  r = flip_sign(r, sign_bits(x));
  return select(is_nan(x) | is_nan(y), nan(x), r);
}

}  // namespace

X rem(X x, X y) {
  if (!is_floating(x.type())) return op(ScalarOp::Rem, x, y);
  if (x.is_double()) return rem(x, y, 53);
  return convert(rem(convert(x, DType::Float64), convert(y, DType::Float64), 24), DType::Float32);
}

namespace {

// r base^e: so many first digits of e, and the others only where some lane has them.
X times_power(X r, X base, X e, int first, int digits) {
  X zero = like(e, 0), one = like(e, 1);
  for (int i = 0; i < std::min(first, digits); ++i) {
    r = select((e & one) != zero, r * base, r);
    base = base * base;
    e = shr(e, 1);
  }
  return digits > first ? unlikely(e > zero, times_power(r, base, e, 2 * first, digits - first), r) : r;
}

}  // namespace

X int_pow(X x, X y) {
  DType t = x.type();
  if (t == DType::Bool) return x | !y;
  X zero = like(x, 0), one = like(x, 1);
  X r = times_power(one, x, y, 4, static_cast<int>(8 * size_of(t)));
  if (!is_signed(t)) return r;
  X sign = select((y & one) != zero, x, one);
  X inverse = select((x == one) | (x == like(x, -1)), sign, zero);
  return select(y < zero, inverse, r);
}

X next_after(X x, X y) {
  X b = bits(x), zero = like(b, 0);
  X away = (x > 0.0) == (y > x);
  X next = from_bits(select(away, b + like(b, 1), b - like(b, 1)));
  X smallest = flip_sign(from_bits(like(b, 1)), sign_bits(y));
  X r = select((b & like(b, x.is_double() ? INT64_MAX : INT32_MAX)) == zero, smallest, next);
  r = select(x == y, y, r);
  return select(is_nan(x) | is_nan(y), nan(x), r);
}

}  // namespace brasa::compiler::math
