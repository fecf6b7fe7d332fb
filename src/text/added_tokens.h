#pragma once

#include "text/prefix_table.h"

namespace brasa::text {

/// A token that is found in a text before the model looks at it.
struct AddedToken {
  std::string text;
  int64_t id = 0;
  bool special = true;       // left out by decode's `skip_special_tokens`
  bool normalized = false;   // looked for in the normalized text
  bool strips_left = false;  // takes the white space before it
  bool strips_right = false;
};

/// Longer ones are refused: a text that nearly has one takes its length for each byte.
inline constexpr size_t kLongestAddedToken = 1024;

/// A piece of a text: an added token, or what is between two.
struct Piece {
  std::string_view text;
  const AddedToken* token = nullptr;
};

/// Finds the first token, the longest that begins there, and so on behind it.
class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);
  void split(std::string_view text, std::vector<Piece>& pieces) const;

 private:
  std::vector<AddedToken> tokens_;
  PrefixTable table_;  // places in tokens_
};

}  // namespace brasa::text
