#pragma once

#include <string>
#include <string_view>

// What tokenizers ask of characters (libutf8proc; The Unicode Standard).
namespace brasa::text {

/// The White_Space property.
bool is_whitespace(char32_t c);
bool is_letter(char32_t c);       // category L
bool is_number(char32_t c);       // N
bool is_punctuation(char32_t c);  // P
bool is_nonspacing_mark(char32_t c);
/// Controls, formats, surrogates, private use.
bool is_other(char32_t c);

/// The code points of `c` in canonical decomposition go to the end of `out`.
void append_decomposed(std::u32string& out, char32_t c);
/// Puts marks of a decomposed text into their canonical order.
void order_marks(std::u32string& text);
void append_lowercase(std::string& out, char32_t c);

/// The text, with U+FFFD for what is not well-formed UTF-8.
std::string well_formed(std::string_view text);

}  // namespace brasa::text
