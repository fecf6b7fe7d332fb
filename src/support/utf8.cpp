#include "support/utf8.h"

#include <cstdint>

namespace brasa {

// The Unicode Standard, table 3-7: only the second byte's range depends on the first one.
std::optional<char32_t> next_code_point(std::string_view text, size_t& at) {
  auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  uint8_t first = byte(at++);
  if (first < 0x80) return first;
  int more = first < 0xc2 || first > 0xf4 ? 0 : first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
  if (more == 0) return std::nullopt;
  char32_t c = first & (0x3f >> more);
  uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  uint8_t high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  for (; more > 0; --more, ++at, low = 0x80, high = 0xbf) {
    if (at == text.size() || byte(at) < low || byte(at) > high) return std::nullopt;
    c = c << 6 | (byte(at) & 0x3f);
  }
  return c;
}

void append_utf8(std::string& out, char32_t c) {
  auto put = [&](char32_t b) { out += static_cast<char>(b); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xc0 | c >> 6);
  } else {
    if (c < 0x10000) {
      put(0xe0 | c >> 12);
    } else {
      put(0xf0 | c >> 18);
      put(0x80 | (c >> 12 & 0x3f));
    }
    put(0x80 | (c >> 6 & 0x3f));
  }
  put(0x80 | (c & 0x3f));
}

}  // namespace brasa
