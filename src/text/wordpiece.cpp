#include "text/wordpiece.h"

#include <algorithm>

#include "support/error.h"
#include "support/utf8.h"
#include "text/unicode.h"

namespace brasa::text {

WordPiece::WordPiece(const Vocabulary& vocabulary, Options options, const std::string& source)
    : options_(std::move(options)) {
  auto unknown = vocabulary.id_of(options_.unknown);
  BRASA_CHECK(unknown, source, ": the unknown token '", options_.unknown, "' is not in the vocabulary");
  unknown_ = *unknown;
  std::vector<PrefixTable::Word> first, following;
  for (const auto& [token, id] : vocabulary.ids()) {
    first.push_back({token, id});
    if (token.starts_with(options_.prefix)) following.push_back({token.substr(options_.prefix.size()), id});
  }
  first_ = PrefixTable(std::move(first));
  following_ = PrefixTable(std::move(following));
}

void WordPiece::encode(std::span<const std::string_view> words, std::vector<int64_t>& ids) const {
  auto is_character = [](char c) { return (c & 0xc0) != 0x80; };
  for (std::string_view word : words) {
    size_t before = ids.size();
    bool known = std::count_if(word.begin(), word.end(), is_character) <= options_.longest_word;
    for (std::string_view rest = word; known && !rest.empty();) {
      const PrefixTable::Word* piece = (rest.size() == word.size() ? first_ : following_).longest(rest);
      known = piece != nullptr;
      if (!piece) break;
      ids.push_back(piece->id);
      rest.remove_prefix(piece->text.size());
    }
    if (known) continue;
    ids.resize(before);
    ids.push_back(unknown_);
  }
}

std::string join_pieces(std::span<const std::string* const> tokens, std::string_view prefix, bool cleanup) {
  static constexpr std::pair<std::string_view, std::string_view> kCleaned[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) {
    std::string token = *tokens[i];
    if (i > 0) {
      if (token.starts_with(prefix))
        token.erase(0, prefix.size());
      else
        token.insert(0, 1, ' ');
    }
    for (const auto& [from, to] : kCleaned) {
      if (!cleanup) break;
      std::string cleaned;
      size_t begin = 0;
      for (size_t at; (at = token.find(from, begin)) != token.npos; begin = at + from.size()) {
        cleaned.append(token, begin, at - begin);
        cleaned += to;
      }
      token = cleaned + token.substr(begin);
    }
    out += token;
  }
  return out;
}

}  // namespace brasa::text
