#pragma once

#include <brasa/dtype.h>

#include <cstdint>

namespace brasa {

// Floats of 16 and 8 bits.
float half_to_float(uint16_t bits);
float bfloat16_to_float(uint16_t bits);
float float8_e5m2_to_float(uint8_t bits);
float float8_e4m3fn_to_float(uint8_t bits);

/// The bits of the nearest number of such a dtype, a tie to the even one; rounded once.
uint16_t narrow_bits(DType t, double v);
inline uint16_t double_to_half(double v) { return narrow_bits(DType::Float16, v); }
inline uint16_t double_to_bfloat16(double v) { return narrow_bits(DType::BFloat16, v); }

}  // namespace brasa
