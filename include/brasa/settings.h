#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <brasa/export.h>

namespace brasa {

/// What a user can set: an environment variable, or a field of CompileOptions.
struct Setting {
  enum class Where : uint8_t { Environment, CompileOptions };
  Where where;
  std::string_view name;
  std::string_view values;  ///< the words that it may be, separated by " | ", or what it is in angle brackets
  std::string_view doc;
};

/// All of them; the library reads no other environment variable.
BRASA_API std::span<const Setting> settings();
/// The table for people; with `markdown` as docs/settings.md has it.
BRASA_API std::string settings_text(bool markdown = false);

}  // namespace brasa
