#pragma once

#include <brasa/dtype.h>

#include <array>
#include <optional>
#include <string_view>

namespace brasa::safetensors {

struct Format {
  std::string_view name;
  int64_t bytes;  // of an element
  std::optional<DType> dtype;
};

inline constexpr std::array kFormats = {
    Format{"F64", 8, DType::Float64},       Format{"F32", 4, DType::Float32},   Format{"F16", 2, DType::Float16},
    Format{"BF16", 2, DType::BFloat16},     Format{"I64", 8, DType::Int64},     Format{"I32", 4, DType::Int32},
    Format{"I16", 2, DType::Int16},         Format{"I8", 1, DType::Int8},       Format{"U8", 1, DType::UInt8},
    Format{"BOOL", 1, DType::Bool},         Format{"C64", 8, DType::Complex64}, Format{"U64", 8, std::nullopt},
    Format{"U32", 4, std::nullopt},         Format{"U16", 2, std::nullopt},     Format{"F8_E4M3", 1, std::nullopt},
    Format{"F8_E5M2", 1, std::nullopt},     Format{"F8_E8M0", 1, std::nullopt}, Format{"F8_E4M3FNUZ", 1, std::nullopt},
    Format{"F8_E5M2FNUZ", 1, std::nullopt},
};

inline const Format* format_named(std::string_view name) {
  for (const Format& f : kFormats)
    if (f.name == name) return &f;
  return nullptr;
}

inline const Format* format_of(DType dtype) {
  for (const Format& f : kFormats)
    if (f.dtype == dtype) return &f;
  return nullptr;
}

}  // namespace brasa::safetensors
