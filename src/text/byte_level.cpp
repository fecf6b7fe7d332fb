#include <array>

#include "support/lazy.h"
#include "support/utf8.h"
#include "text/bpe.h"
#include "text/unicode.h"

namespace brasa::text {
namespace {

// Bytes that are printable in Latin-1 are themselves, the others follow from U+0100 on.
const std::array<char32_t, 256>& characters() {
  static constinit Lazy<std::array<char32_t, 256>> table([] {
    std::array<char32_t, 256> out;
    char32_t next = 0x100;
    for (char32_t b = 0; b < 256; ++b) {
      bool printable = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
      out[b] = printable ? b : next++;
    }
    return out;
  });
  return *table;
}

std::optional<char> byte_of(char32_t c) {
  static constinit Lazy<std::unordered_map<char32_t, char>> bytes([] {
    std::unordered_map<char32_t, char> out;
    for (size_t b = 0; b < 256; ++b) out.emplace(characters()[b], static_cast<char>(b));
    return out;
  });
  auto at = bytes->find(c);
  return at == bytes->end() ? std::nullopt : std::optional(at->second);
}

bool is_space(char32_t c) { return is_whitespace(c); }
bool is_other_character(char32_t c) { return !is_whitespace(c) && !is_letter(c) && !is_number(c); }

}  // namespace

std::string written_bytes(std::string_view bytes) {
  std::string out;
  for (char c : bytes) append_utf8(out, characters()[static_cast<uint8_t>(c)]);
  return out;
}

std::string read_bytes(std::span<const std::string* const> tokens) {
  std::string out;
  for (const std::string* token : tokens) {
    std::string bytes;
    bool known = true;
    for (size_t at = 0; at < token->size() && known;) {
      auto c = next_code_point(*token, at);
      auto b = c ? byte_of(*c) : std::nullopt;
      known = b.has_value();
      if (b) bytes += *b;
    }
    out += known ? bytes : *token;
  }
  return well_formed(out);
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
void split_gpt2(std::string_view text, std::vector<std::string_view>& words) {
  auto code_point = [&](size_t& at) { return *next_code_point(text, at); };
  auto run_end = [&](size_t at, bool (*is_in)(char32_t)) {
    for (size_t next = at; at < text.size() && is_in(code_point(next)); at = next) {
    }
    return at;
  };
  for (size_t begin = 0; begin < text.size();) {
    std::string_view rest = text.substr(begin);
    size_t end = 0;
    for (std::string_view contraction : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (rest.starts_with(contraction)) end = begin + contraction.size();
    size_t behind_space = begin + (rest[0] == ' ' ? 1 : 0), at = behind_space;
    if (end == 0 && at < text.size()) {
      char32_t c = code_point(at);
      if (!is_space(c))
        end = run_end(behind_space, is_letter(c) ? is_letter : is_number(c) ? is_number : is_other_character);
    }
    if (end == 0) {
      // White space, but the last of it belongs to the word that follows.
      size_t last = begin;
      for (size_t next = begin; next < text.size() && is_space(code_point(next)); end = next) {
        last = end == 0 ? begin : end;
      }
      if (end < text.size() && last > begin) end = last;
    }
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
}

}  // namespace brasa::text
