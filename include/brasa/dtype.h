#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <brasa/export.h>

namespace brasa {

/// Element types. The numbers are those of PyTorch's ScalarType, so that files and the C ABI agree.
enum class DType : int8_t {
  UInt8 = 0,
  Int8 = 1,
  Int16 = 2,
  Int32 = 3,
  Int64 = 4,
  Float16 = 5,
  Float32 = 6,
  Float64 = 7,
  Complex32 = 8,
  Complex64 = 9,
  Complex128 = 10,
  Bool = 11,
  BFloat16 = 15,
};

/// Bytes of one element.
constexpr int64_t size_of(DType t) {
  switch (t) {
    case DType::UInt8:
    case DType::Int8:
    case DType::Bool: return 1;
    case DType::Int16:
    case DType::Float16:
    case DType::BFloat16: return 2;
    case DType::Int32:
    case DType::Float32:
    case DType::Complex32: return 4;
    case DType::Int64:
    case DType::Float64:
    case DType::Complex64: return 8;
    case DType::Complex128: return 16;
  }
  return 0;
}

constexpr bool is_floating(DType t) {
  return t == DType::Float16 || t == DType::BFloat16 || t == DType::Float32 || t == DType::Float64;
}
constexpr bool is_complex(DType t) { return t == DType::Complex32 || t == DType::Complex64 || t == DType::Complex128; }
/// Integers without bool; `with_bool` counts bool too.
constexpr bool is_integral(DType t, bool with_bool = false) {
  return (t >= DType::UInt8 && t <= DType::Int64) || (with_bool && t == DType::Bool);
}
constexpr bool is_signed(DType t) { return t != DType::UInt8 && t != DType::Bool; }
constexpr bool is_reduced_floating(DType t) { return t == DType::Float16 || t == DType::BFloat16; }

/// "f32", "bf16", "i64", "bool", "c64" …: the names in the IR's text.
BRASA_API std::string_view short_name(DType t);
/// "float32", "bfloat16", "int64", …: PyTorch's names.
BRASA_API std::string_view name(DType t);
/// The dtype of either kind of name; nothing if there is none.
BRASA_API std::optional<DType> dtype_of(std::string_view name);

/// PyTorch's promotion of two dtypes of equal category rank (torch.promote_types).
BRASA_API DType promote(DType a, DType b);

}  // namespace brasa
