#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace brasa {

/// The code point that begins at byte `at`, which moves behind it. Where none is well-formed: nothing, and `at` moves behind the longest
/// beginning of one, at least a byte (The Unicode Standard, 3.9: maximal subpart). Surrogates are not well-formed.
std::optional<char32_t> next_code_point(std::string_view text, size_t& at);
void append_utf8(std::string& out, char32_t c);

}  // namespace brasa
