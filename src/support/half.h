#pragma once

#include <cstdint>

namespace brasa {

// Storage formats of 16 bits. Conversions round to nearest even, once, also from double.
float half_to_float(uint16_t bits);
float bfloat16_to_float(uint16_t bits);
uint16_t double_to_half(double v);
uint16_t double_to_bfloat16(double v);

}  // namespace brasa
