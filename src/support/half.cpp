#include "support/half.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace brasa {
namespace {

// Rounds a finite v to `precision` significant bits, with exponents from `min_exponent` (below that, denormals).
double rounded(double v, int precision, int min_exponent) {
  if (v == 0) return v;
  int e;
  std::frexp(v, &e);  // |v| in [2^(e-1), 2^e)
  int unit = std::max(e - precision, min_exponent - precision + 1);
  return std::ldexp(std::nearbyint(std::ldexp(v, -unit)), unit);
}

}  // namespace

float half_to_float(uint16_t h) {
  uint32_t sign = static_cast<uint32_t>(h & 0x8000) << 16, exponent = (h >> 10) & 31, fraction = h & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) {
    float v = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -v : v;
  }
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

float bfloat16_to_float(uint16_t b) { return std::bit_cast<float>(static_cast<uint32_t>(b) << 16); }

uint16_t double_to_half(double v) {
  uint16_t sign = std::signbit(v) ? 0x8000 : 0;
  if (std::isnan(v)) return sign | 0x7e00;
  double r = std::fabs(rounded(v, 11, -14));
  if (std::isinf(v) || r > 65504) return sign | 0x7c00;
  if (r == 0) return sign;
  int e;
  std::frexp(r, &e);
  if (e - 1 < -14) return sign | static_cast<uint16_t>(std::ldexp(r, 24));
  return sign | static_cast<uint16_t>((e + 14) << 10 | (static_cast<int>(std::ldexp(r, 11 - e)) & 1023));
}

uint16_t double_to_bfloat16(double v) {
  if (std::isnan(v)) return std::signbit(v) ? 0xffc0 : 0x7fc0;
  double r = std::isinf(v) ? v : rounded(v, 8, -126);
  return static_cast<uint16_t>(std::bit_cast<uint32_t>(static_cast<float>(r)) >> 16);
}

}  // namespace brasa
