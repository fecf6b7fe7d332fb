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

// What the format has and Brasa has not.
inline constexpr std::array kOtherFormats = {
    Format{"U32", 4, std::nullopt},         Format{"U16", 2, std::nullopt},         Format{"F8_E8M0", 1, std::nullopt},
    Format{"F8_E4M3FNUZ", 1, std::nullopt}, Format{"F8_E5M2FNUZ", 1, std::nullopt},
};

inline std::optional<Format> format_named(std::string_view name) {
  for (const DTypeInfo& info : kDTypes)
    if (!name.empty() && info.file_name == name) return Format{name, info.bytes, info.dtype};
  for (const Format& f : kOtherFormats)
    if (f.name == name) return f;
  return std::nullopt;
}

}  // namespace brasa::safetensors
