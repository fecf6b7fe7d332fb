#include "support/utf8.h"
#include "text/unicode.h"
#include "text/wordpiece.h"

namespace brasa::text {
namespace {

bool is_chinese(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kBlocks[] = {
      {0x4e00, 0x9fff},   {0x3400, 0x4dbf},   {0x20000, 0x2a6df}, {0x2a700, 0x2b73f},
      {0x2b740, 0x2b81f}, {0x2b920, 0x2ceaf}, {0xf900, 0xfaff},   {0x2f800, 0x2fa1f}};
  for (const auto& [first, last] : kBlocks)
    if (c >= first && c <= last) return true;
  return false;
}

bool is_control(char32_t c) { return c == 0 || c == 0xfffd || (c != '\t' && c != '\n' && c != '\r' && is_other(c)); }

}  // namespace

std::string BertNormalizer::operator()(std::string_view text) const {
  bool strip = options.strip_accents.value_or(options.lowercase);
  std::u32string characters;
  for (size_t at = 0; at < text.size();) {
    char32_t c = *next_code_point(text, at);
    if (clean && is_control(c)) continue;
    if (clean && is_whitespace(c)) c = ' ';
    bool alone = options.split_chinese && is_chinese(c);
    if (alone) characters += U' ';
    std::u32string parts;
    if (strip)
      append_decomposed(parts, c);
    else
      parts += c;
    for (char32_t part : parts)
      if (!strip || !is_nonspacing_mark(part)) characters += part;
    if (alone) characters += U' ';
  }
  if (strip) order_marks(characters);
  std::string out;
  for (char32_t c : characters) options.lowercase ? append_lowercase(out, c) : append_utf8(out, c);
  return out;
}

void split_bert(std::string_view text, std::vector<std::string_view>& words) {
  size_t begin = 0;
  auto end_word = [&](size_t end) {
    if (end > begin) words.push_back(text.substr(begin, end - begin));
  };
  for (size_t at = 0; at < text.size();) {
    size_t here = at;
    char32_t c = *next_code_point(text, at);
    bool space = is_whitespace(c);
    // ASCII's symbols ($, +, <, …) count as punctuation too.
    bool symbol = c > ' ' && c < 0x7f && !is_letter(c) && !is_number(c);
    if (!space && !symbol && !is_punctuation(c)) continue;
    end_word(here);
    begin = at;
    if (!space) words.push_back(text.substr(here, at - here));
  }
  end_word(text.size());
}

}  // namespace brasa::text
