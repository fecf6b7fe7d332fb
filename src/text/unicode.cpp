#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "support/utf8.h"

namespace brasa::text {
namespace {

utf8proc_category_t category(char32_t c) { return utf8proc_category(static_cast<utf8proc_int32_t>(c)); }
int combining_class(char32_t c) { return utf8proc_get_property(static_cast<utf8proc_int32_t>(c))->combining_class; }

}  // namespace

bool is_whitespace(char32_t c) {
  return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
         c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}
bool is_letter(char32_t c) {
  if (c < 0x80) return (c | 0x20) >= 'a' && (c | 0x20) <= 'z';
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}
bool is_number(char32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO;
}
bool is_punctuation(char32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}
bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }
bool is_other(char32_t c) {
  utf8proc_category_t k = category(c);
  return k >= UTF8PROC_CATEGORY_CC && k <= UTF8PROC_CATEGORY_CO;
}

void append_decomposed(std::u32string& out, char32_t c) {
  constexpr int kMost = 8;  // canonical decompositions have 4 code points at most
  utf8proc_int32_t parts[kMost];
  int boundary = 0;
  utf8proc_ssize_t n =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, kMost, UTF8PROC_DECOMPOSE, &boundary);
  if (n < 1 || n > kMost) {
    out += c;
    return;
  }
  for (utf8proc_ssize_t i = 0; i < n; ++i) out += static_cast<char32_t>(parts[i]);
}

void order_marks(std::u32string& text) {
  auto is_mark = [](char32_t c) { return combining_class(c) != 0; };
  for (auto at = text.begin(); at != text.end();) {
    at = std::find_if(at, text.end(), is_mark);
    auto end = std::find_if_not(at, text.end(), is_mark);
    std::stable_sort(at, end, [](char32_t a, char32_t b) { return combining_class(a) < combining_class(b); });
    at = end;
  }
}

void append_lowercase(std::string& out, char32_t c) {
  // The one letter whose lower case is two (SpecialCasing.txt, without conditions).
  constexpr char32_t kDottedI = 0x130, kDot = 0x307;
  if (c == kDottedI) {
    out += 'i';
    return append_utf8(out, kDot);
  }
  append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

std::string well_formed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    size_t begin = at;
    if (next_code_point(text, at))
      out += text.substr(begin, at - begin);
    else
      out += "\xef\xbf\xbd";
  }
  return out;
}

}  // namespace brasa::text
