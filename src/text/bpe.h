#pragma once

#include <array>
#include <memory>
#include <unordered_map>

#include "text/model.h"

namespace brasa::text {

/// Byte pair encoding of bytes (Sennrich, Haddow & Birch 2016; Radford et al. 2019, 2.2): a word is its bytes, of which the pair that comes
/// first in the list of merges becomes one token, again and again.
class ByteLevelBpe final : public Model {
 public:
  struct Options {
    std::optional<std::string> unknown = {};  // for bytes that the vocabulary has not; left out otherwise
    bool ignore_merges = false;               // a word that is a token is that token
  };
  /// Pairs of tokens, the earliest first. `vocabulary` must outlive the model. brasa::Error that begins with `source` for a pair whose tokens, or
  /// whose result, are not in the vocabulary.
  ByteLevelBpe(const Vocabulary& vocabulary, const std::vector<std::pair<std::string, std::string>>& merges,
               Options options, const std::string& source);
  void encode(std::span<const std::string_view> words, std::vector<int64_t>& ids) const override;

 private:
  struct Merge {
    uint32_t rank;
    int64_t id;
  };
  class Word;
  static uint64_t pair_of(int64_t left, int64_t right) {
    return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
  }

  const Vocabulary& vocabulary_;
  Options options_;
  std::array<int64_t, 256> bytes_ = {};  // tokens of single bytes; -1: none
  std::unordered_map<uint64_t, Merge> merges_;
};

/// How a vocabulary writes bytes: each as a printable character.
std::string written_bytes(std::string_view bytes);
/// The reverse of some tokens, with U+FFFD for what is no UTF-8; a token with other characters is itself.
std::string read_bytes(std::span<const std::string* const> tokens);

/// The words of a text as GPT-2's pattern makes them: contractions, letters, numbers, other characters, each with the space before it; white space.
void split_gpt2(std::string_view text, std::vector<std::string_view>& words);

}  // namespace brasa::text
