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

enum class DTypeKind : uint8_t { None, Bool, Unsigned, Signed, Floating, Complex };

/// Everything that is known about a dtype: one row each, at its number.
struct DTypeInfo {
  std::string_view short_name;  // in the IR's text
  std::string_view name;        // PyTorch's
  int64_t bytes;                // of one element
  DTypeKind kind;
  DType part;  // of a complex number its real and imaginary part; else the dtype itself
};

inline constexpr DTypeInfo kDTypes[] = {
    {"u8", "uint8", 1, DTypeKind::Unsigned, DType::UInt8},
    {"i8", "int8", 1, DTypeKind::Signed, DType::Int8},
    {"i16", "int16", 2, DTypeKind::Signed, DType::Int16},
    {"i32", "int32", 4, DTypeKind::Signed, DType::Int32},
    {"i64", "int64", 8, DTypeKind::Signed, DType::Int64},
    {"f16", "float16", 2, DTypeKind::Floating, DType::Float16},
    {"f32", "float32", 4, DTypeKind::Floating, DType::Float32},
    {"f64", "float64", 8, DTypeKind::Floating, DType::Float64},
    {"c32", "complex32", 4, DTypeKind::Complex, DType::Float16},
    {"c64", "complex64", 8, DTypeKind::Complex, DType::Float32},
    {"c128", "complex128", 16, DTypeKind::Complex, DType::Float64},
    {"bool", "bool", 1, DTypeKind::Bool, DType::Bool},
    {},
    {},
    {},
    {"bf16", "bfloat16", 2, DTypeKind::Floating, DType::BFloat16},
};
constexpr const DTypeInfo& info_of(DType t) { return kDTypes[static_cast<int>(t)]; }

/// Bytes of one element.
constexpr int64_t size_of(DType t) { return info_of(t).bytes; }
constexpr bool is_floating(DType t) { return info_of(t).kind == DTypeKind::Floating; }
constexpr bool is_complex(DType t) { return info_of(t).kind == DTypeKind::Complex; }
/// Integers without bool; `with_bool` counts bool too.
constexpr bool is_integral(DType t, bool with_bool = false) {
  DTypeKind k = info_of(t).kind;
  return k == DTypeKind::Signed || k == DTypeKind::Unsigned || (with_bool && k == DTypeKind::Bool);
}
constexpr bool is_signed(DType t) { return info_of(t).kind >= DTypeKind::Signed; }
constexpr bool is_reduced_floating(DType t) { return is_floating(t) && size_of(t) == 2; }
/// The dtype of a complex number's parts; a real dtype itself.
constexpr DType real_part_of(DType t) { return info_of(t).part; }

/// "f32", "bf16", "i64", "bool", "c64" …: the names in the IR's text.
constexpr std::string_view short_name(DType t) { return info_of(t).short_name; }
/// "float32", "bfloat16", "int64", …: PyTorch's names.
constexpr std::string_view name(DType t) { return info_of(t).name; }
/// The dtype of either kind of name; nothing if there is none.
BRASA_API std::optional<DType> dtype_of(std::string_view name);

/// The complex dtype whose parts hold `t`; integers and bfloat16 take complex64, as in PyTorch.
BRASA_API DType complex_of(DType t);

/// PyTorch's promotion of two dtypes of equal category rank (torch.promote_types).
BRASA_API DType promote(DType a, DType b);

}  // namespace brasa
