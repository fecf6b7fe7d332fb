#pragma once

#include <cstdint>
#include <limits>
#include <numeric>

// Arithmetic on sizes, strides and offsets: brasa::Error where 64 bits do not hold the result.
namespace brasa {

[[noreturn]] void fail_overflow(int64_t a, char operation, int64_t b);

inline int64_t checked_add(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_add_overflow(a, b, &r)) [[unlikely]]
    fail_overflow(a, '+', b);
  return r;
}
inline int64_t checked_sub(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_sub_overflow(a, b, &r)) [[unlikely]]
    fail_overflow(a, '-', b);
  return r;
}
inline int64_t checked_mul(int64_t a, int64_t b) {
  int64_t r;
  if (__builtin_mul_overflow(a, b, &r)) [[unlikely]]
    fail_overflow(a, '*', b);
  return r;
}

/// Quotient rounded towards minus infinity, and what it leaves, with b's sign; b is not 0.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return checked_sub(0, a);
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

/// The greatest common divisor, not negative.
inline int64_t common_divisor(int64_t a, int64_t b) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
  if (a == kLowest || b == kLowest) return 1;  // which have no absolute value; 1 divides everything
  return std::gcd(a, b);
}

}  // namespace brasa
