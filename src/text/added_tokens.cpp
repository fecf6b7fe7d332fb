#include "text/added_tokens.h"

#include "support/utf8.h"
#include "text/unicode.h"

namespace brasa::text {

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::vector<PrefixTable::Word> words;
  for (size_t i = 0; i < tokens_.size(); ++i) words.push_back({tokens_[i].text, static_cast<int64_t>(i)});
  table_ = PrefixTable(std::move(words));
}

void AddedTokens::split(std::string_view text, std::vector<Piece>& pieces) const {
  auto piece = [&](size_t begin, size_t end, const AddedToken* token) {
    if (end > begin) pieces.push_back({text.substr(begin, end - begin), token});
  };
  size_t done = 0;
  // A token is white space's neighbour: where the white space before it began.
  size_t space = 0;
  bool in_space = false;
  for (size_t at = 0; !table_.empty() && at < text.size();) {
    const PrefixTable::Word* found = table_.longest(text.substr(at));
    if (!found) {
      size_t here = at;
      bool is_space = is_whitespace(*next_code_point(text, at));
      if (is_space && !in_space) space = here;
      in_space = is_space;
      continue;
    }
    const AddedToken& token = tokens_[static_cast<size_t>(found->id)];
    size_t begin = token.strips_left && in_space ? std::max(space, done) : at, end = at + token.text.size();
    at = end;
    in_space = false;
    if (token.strips_right)
      for (size_t next = end; end < text.size() && is_whitespace(*next_code_point(text, next)); end = next) {
      }
    at = end;
    piece(done, begin, nullptr);
    piece(begin, end, &token);
    done = end;
  }
  piece(done, text.size(), nullptr);
}

}  // namespace brasa::text
