#pragma once

#include <brasa/tokenizer.h>

#include "text/model.h"
#include "text/prefix_table.h"

namespace brasa::text {

/// A word is the longest token that it begins with, then the longest that the rest begins with among those that continue a word, and so on;
/// the unknown token if one is missing (Devlin et al. 2019; Wu et al. 2016, 4.1).
class WordPiece final : public Model {
 public:
  struct Options {
    std::string unknown = "[UNK]", prefix = "##";  // of tokens that continue a word
    int64_t longest_word = 100;                    // in code points; a longer one is unknown
  };
  /// brasa::Error that begins with `source` if the unknown token is missing.
  WordPiece(const Vocabulary& vocabulary, Options options, const std::string& source);
  void encode(std::span<const std::string_view> words, std::vector<int64_t>& ids) const override;

 private:
  Options options_;
  int64_t unknown_;
  PrefixTable first_, following_;
};

/// Tokens with spaces between, but for those that continue a word; `cleanup` takes spaces before punctuation and contractions away.
std::string join_pieces(std::span<const std::string* const> tokens, std::string_view prefix, bool cleanup);

/// BERT's cleaning of texts: controls go, white space becomes spaces, Chinese characters stand alone, accents and capitals go.
struct BertNormalizer {
  bool clean = true;
  BertOptions options;
  std::string operator()(std::string_view text) const;
};
/// The words of a text: what is between white space, and each punctuation mark.
void split_bert(std::string_view text, std::vector<std::string_view>& words);

}  // namespace brasa::text
