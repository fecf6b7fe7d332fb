#include <brasa/elements.h>

#include <cmath>

#include "support/error.h"
#include "support/half.h"

namespace brasa {

std::optional<DType> dtype_of(std::string_view text) {
  for (const DTypeInfo& info : kDTypes)
    if (info.short_name == text || info.name == text) return info.dtype;
  return std::nullopt;
}

double epsilon_of(DType t) { return std::ldexp(1.0, 1 - info_of(t).digits); }

void detail::unknown_dtype(DType t) { fail_internal(str("no dtype has the number ", static_cast<int>(t))); }

Half::Half(float v) : x(double_to_half(v)) {}
Half::operator float() const { return half_to_float(x); }
BFloat16::BFloat16(float v) : x(double_to_bfloat16(v)) {}
BFloat16::operator float() const { return bfloat16_to_float(x); }
Float8_e5m2::Float8_e5m2(float v) : x(static_cast<uint8_t>(narrow_bits(DType::Float8_e5m2, v))) {}
Float8_e5m2::operator float() const { return float8_e5m2_to_float(x); }
Float8_e4m3fn::Float8_e4m3fn(float v) : x(static_cast<uint8_t>(narrow_bits(DType::Float8_e4m3fn, v))) {}
Float8_e4m3fn::operator float() const { return float8_e4m3fn_to_float(x); }

Half Half::rounded(double v) {
  Half h;
  h.x = double_to_half(v);
  return h;
}
BFloat16 BFloat16::rounded(double v) {
  BFloat16 h;
  h.x = double_to_bfloat16(v);
  return h;
}
// PyTorch's are made of floats.
Float8_e5m2 Float8_e5m2::rounded(double v) { return static_cast<float>(v); }
Float8_e4m3fn Float8_e4m3fn::rounded(double v) { return static_cast<float>(v); }

DType complex_of(DType t) {
  if (is_complex(t)) return t;
  for (const DTypeInfo& info : kDTypes)
    if (info.kind == DTypeKind::Complex && info.part == t) return info.dtype;
  return DType::Complex64;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  for (DType t : {a, b}) {
    BRASA_CHECK(computes(t) || !is_floating(t), "Promotion for Float8 Types is not supported, attempted to promote ",
                info_of(a).scalar_type, " and ", info_of(b).scalar_type);
    BRASA_CHECK(computes(t) || is_floating(a) || is_floating(b),
                "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote ",
                info_of(a).scalar_type, " and ", info_of(b).scalar_type);
  }
  if (is_complex(a) || is_complex(b)) {
    DType ra = real_part_of(a), rb = real_part_of(b);
    if (!is_floating(ra)) return b;
    if (!is_floating(rb)) return a;
    return complex_of(promote(ra, rb));
  }
  if (is_floating(a) || is_floating(b)) {
    if (!is_floating(a)) return b;
    if (!is_floating(b)) return a;
    if (is_reduced_floating(a) && is_reduced_floating(b)) return DType::Float32;
    return size_of(a) > size_of(b) ? a : b;
  }
  if (a == DType::Bool) return b;
  if (b == DType::Bool) return a;
  // uint8 with a signed type of the same width needs the next wider one.
  if (a == DType::UInt8 || b == DType::UInt8) {
    DType other = a == DType::UInt8 ? b : a;
    return other == DType::Int8 ? DType::Int16 : other;
  }
  return size_of(a) > size_of(b) ? a : b;
}

}  // namespace brasa
