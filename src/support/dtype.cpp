#include <brasa/dtype.h>

#include <array>

namespace brasa {
namespace {

struct Row {
  DType dtype;
  std::string_view short_name, name;
};

constexpr std::array kRows = {
    Row{DType::UInt8, "u8", "uint8"},
    Row{DType::Int8, "i8", "int8"},
    Row{DType::Int16, "i16", "int16"},
    Row{DType::Int32, "i32", "int32"},
    Row{DType::Int64, "i64", "int64"},
    Row{DType::Float16, "f16", "float16"},
    Row{DType::Float32, "f32", "float32"},
    Row{DType::Float64, "f64", "float64"},
    Row{DType::Complex32, "c32", "complex32"},
    Row{DType::Complex64, "c64", "complex64"},
    Row{DType::Complex128, "c128", "complex128"},
    Row{DType::Bool, "bool", "bool"},
    Row{DType::BFloat16, "bf16", "bfloat16"},
};

const Row& row(DType t) {
  for (const Row& r : kRows)
    if (r.dtype == t) return r;
  __builtin_unreachable();
}

// Complex dtype whose parts hold `t`; half and bfloat16 widen as in PyTorch.
DType complex_of(DType t) {
  switch (t) {
    case DType::Float16: return DType::Complex32;
    case DType::Float64: return DType::Complex128;
    default: return DType::Complex64;
  }
}

DType real_of(DType t) {
  switch (t) {
    case DType::Complex32: return DType::Float16;
    case DType::Complex128: return DType::Float64;
    default: return DType::Float32;
  }
}

}  // namespace

std::string_view short_name(DType t) { return row(t).short_name; }
std::string_view name(DType t) { return row(t).name; }

std::optional<DType> dtype_of(std::string_view text) {
  for (const Row& r : kRows)
    if (r.short_name == text || r.name == text) return r.dtype;
  return std::nullopt;
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (is_complex(a) || is_complex(b)) {
    DType ra = is_complex(a) ? real_of(a) : a, rb = is_complex(b) ? real_of(b) : b;
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
