#pragma once

#include <array>
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
  Float8_e5m2 = 23,
  Float8_e4m3fn = 24,
  UInt64 = 29,
};

enum class DTypeKind : uint8_t { Bool, Unsigned, Signed, Floating, Complex };

/// Everything that is known about a dtype. The C++ types of elements are in <brasa/elements.h>.
struct DTypeInfo {
  DType dtype;
  std::string_view enumerator;
  std::string_view short_name;   // in the IR's text
  std::string_view name;         // PyTorch's
  std::string_view scalar_type;  // LibTorch's: "Float"
  std::string_view cpp_name;     // as LibTorch prints the elements' type: "float"
  std::string_view file_name;    // in a safetensors file; empty where that has none
  int64_t bytes;                 // of one element
  DTypeKind kind;
  DType part;     // of a complex number its real and imaginary part; else the dtype
                  // itself
  bool computes;  // else elements are only stored, moved and converted

  // Of a floating number those of its significand, with the leading one; of an integer those of its value.
  int digits = 0;
  // Of a floating number: the exponent of the smallest normal one, the largest
  // finite one, and as bits (16 at most) what NaN and numbers beyond the largest become.
  int min_exponent = 0;
  double largest = 0;
  uint16_t nan = 0, beyond = 0;
};

// clang-format off
inline constexpr DTypeInfo kDTypes[] = {
    {DType::UInt8, "UInt8", "u8", "uint8", "Byte", "unsigned char", "U8", 1, DTypeKind::Unsigned, DType::UInt8, true, 8},
    {DType::Int8, "Int8", "i8", "int8", "Char", "signed char", "I8", 1, DTypeKind::Signed, DType::Int8, true, 7},
    {DType::Int16, "Int16", "i16", "int16", "Short", "short int", "I16", 2, DTypeKind::Signed, DType::Int16, true, 15},
    {DType::Int32, "Int32", "i32", "int32", "Int", "int", "I32", 4, DTypeKind::Signed, DType::Int32, true, 31},
    {DType::Int64, "Int64", "i64", "int64", "Long", "long int", "I64", 8, DTypeKind::Signed, DType::Int64, true, 63},
    {DType::Float16, "Float16", "f16", "float16", "Half", "c10::Half", "F16", 2, DTypeKind::Floating, DType::Float16, true,
     11, -14, 65504, 0x7e00, 0x7c00},
    {DType::Float32, "Float32", "f32", "float32", "Float", "float", "F32", 4, DTypeKind::Floating, DType::Float32, true,
     24, -126, 0x1.fffffep127},
    {DType::Float64, "Float64", "f64", "float64", "Double", "double", "F64", 8, DTypeKind::Floating, DType::Float64, true,
     53, -1022, 0x1.fffffffffffffp1023},
    {DType::Complex32, "Complex32", "c32", "complex32", "ComplexHalf", "c10::complex<c10::Half>", "", 4, DTypeKind::Complex, DType::Float16, true},
    {DType::Complex64, "Complex64", "c64", "complex64", "ComplexFloat", "c10::complex<float>", "C64", 8, DTypeKind::Complex, DType::Float32, true},
    {DType::Complex128, "Complex128", "c128", "complex128", "ComplexDouble", "c10::complex<double>", "", 16, DTypeKind::Complex, DType::Float64, true},
    {DType::Bool, "Bool", "bool", "bool", "Bool", "bool", "BOOL", 1, DTypeKind::Bool, DType::Bool, true, 1},
    {DType::BFloat16, "BFloat16", "bf16", "bfloat16", "BFloat16", "c10::BFloat16", "BF16", 2, DTypeKind::Floating, DType::BFloat16, true,
     8, -126, 0x1.fep127, 0x7fc0, 0x7f80},
    {DType::Float8_e5m2, "Float8_e5m2", "f8e5m2", "float8_e5m2", "Float8_e5m2", "c10::Float8_e5m2", "F8_E5M2", 1, DTypeKind::Floating, DType::Float8_e5m2, false,
     3, -14, 57344, 0x7f, 0x7c},
    {DType::Float8_e4m3fn, "Float8_e4m3fn", "f8e4m3fn", "float8_e4m3fn", "Float8_e4m3fn", "c10::Float8_e4m3fn", "F8_E4M3", 1, DTypeKind::Floating, DType::Float8_e4m3fn, false,
     4, -6, 448, 0x7f, 0x7f},
    {DType::UInt64, "UInt64", "u64", "uint64", "UInt64", "unsigned long", "U64", 8, DTypeKind::Unsigned, DType::UInt64, false, 64},
};
// clang-format on

namespace detail {
// The row of each number; -1 where PyTorch has a dtype that is not here.
inline constexpr auto kDTypeRows = [] {
  std::array<int8_t, 30> rows{};
  rows.fill(-1);
  int8_t row = 0;
  for (const DTypeInfo& info : kDTypes) rows[static_cast<size_t>(info.dtype)] = row++;
  return rows;
}();
}  // namespace detail

constexpr const DTypeInfo& info_of(DType t) { return kDTypes[detail::kDTypeRows[static_cast<size_t>(t)]]; }
/// Whether a number is that of a dtype.
constexpr bool is_dtype(int64_t number) {
  return number >= 0 && number < static_cast<int64_t>(detail::kDTypeRows.size()) && detail::kDTypeRows[number] >= 0;
}

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
/// float16 and bfloat16: arithmetic on them happens in float32.
constexpr bool is_reduced_floating(DType t) { return is_floating(t) && size_of(t) == 2; }
/// Those and the floats of 8 bits: their values are found from their bits.
constexpr bool is_narrow_floating(DType t) { return is_floating(t) && size_of(t) <= 2; }
/// Whether operators compute with it; otherwise its elements are stored, moved and converted.
constexpr bool computes(DType t) { return info_of(t).computes; }
/// The dtype of a complex number's parts; a real dtype itself.
constexpr DType real_part_of(DType t) { return info_of(t).part; }

/// "f32", "bf16", "i64", "bool", "c64" …: the names in the IR's text.
constexpr std::string_view short_name(DType t) { return info_of(t).short_name; }
/// "float32", "bfloat16", "int64", …: PyTorch's names.
constexpr std::string_view name(DType t) { return info_of(t).name; }
/// The dtype of either kind of name; nothing if there is none.
BRASA_API std::optional<DType> dtype_of(std::string_view name);

/// Of a floating dtype the distance from 1 to the next number.
BRASA_API double epsilon_of(DType t);

/// The complex dtype whose parts hold `t`; integers and bfloat16 take complex64, as in PyTorch.
BRASA_API DType complex_of(DType t);

/// PyTorch's promotion of two dtypes of equal category rank (torch.promote_types); brasa::Error where it has none.
BRASA_API DType promote(DType a, DType b);

}  // namespace brasa
