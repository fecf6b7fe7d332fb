#include "support/half.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include <brasa/elements.h>

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

// The upper half of a float16.
float float8_e5m2_to_float(uint8_t b) { return half_to_float(static_cast<uint16_t>(b << 8)); }

float float8_e4m3fn_to_float(uint8_t b) {
  uint32_t sign = static_cast<uint32_t>(b & 0x80) << 24, rest = static_cast<uint32_t>(b & 0x7f) << 20;
  if ((b & 0x7f) == 0x7f) return std::bit_cast<float>(sign | rest | 0x7f800000);
  // The exponent is rebased by an exact product, which also normalises denormals.
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(std::bit_cast<float>(rest) * 0x1p120F));
}

uint16_t narrow_bits(DType t, double v) {
  const DTypeInfo& format = info_of(t);
  int fraction = format.digits - 1;
  auto sign = static_cast<uint16_t>(std::signbit(v) ? 1 << (8 * format.bytes - 1) : 0);
  if (std::isnan(v)) return sign | format.nan;
  if (std::isinf(v)) return sign | format.beyond;
  double r = std::fabs(rounded(v, format.digits, format.min_exponent));
  if (r > format.largest) return sign | format.beyond;
  if (r == 0) return sign;
  int e;
  std::frexp(r, &e);  // r in [2^(e-1), 2^e)
  int biased = std::max(e - format.min_exponent, 0);
  // Without the leading one, which denormals lack.
  int units = static_cast<int>(std::ldexp(r, fraction - std::max(e - 1, format.min_exponent))) & ((1 << fraction) - 1);
  return static_cast<uint16_t>(sign | biased << fraction | units);
}

}  // namespace brasa
