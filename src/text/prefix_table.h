#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::text {

/// Finds which of its words a text begins with. Looking goes from byte to byte, so that it takes the logarithm of the number of words
/// for each byte of the longest word.
class PrefixTable {
 public:
  struct Word {
    std::string text;
    int64_t id;
  };
  PrefixTable() = default;
  /// Of words that are equal the last counts; empty ones are never found.
  explicit PrefixTable(std::vector<Word> words);
  /// The longest one.
  const Word* longest(std::string_view text) const;
  bool empty() const { return words_.empty(); }

 private:
  std::vector<Word> words_;               // in order
  std::array<uint32_t, 257> begin_ = {};  // of those with this first byte
};

}  // namespace brasa::text
