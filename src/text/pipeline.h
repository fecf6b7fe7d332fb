#pragma once

#include <brasa/tokenizer.h>

#include <map>
#include <memory>
#include <set>

#include "text/added_tokens.h"
#include "text/model.h"
#include "text/wordpiece.h"

namespace brasa::text {

/// What stands around texts: places for the first and second one, and special tokens.
struct Template {
  struct Part {
    enum class Kind : uint8_t { First, Second, Token } kind;
    int64_t id = 0, type = 0;
  };
  std::vector<Part> parts;
  int64_t tokens() const;
};

/// The steps from a text to numbers and back.
class Pipeline {
 public:
  enum class Words : uint8_t { Whole, Gpt2, Bytes, Bert };  // Bytes: a text as one word, of bytes
  enum class Join : uint8_t { Spaces, Bytes, Pieces };

  Vocabulary vocabulary;  // of the model and of added tokens
  std::unique_ptr<Vocabulary> of_model = std::make_unique<Vocabulary>();
  std::unique_ptr<Model> model;
  std::optional<BertNormalizer> normalizer;
  Words words = Words::Whole;
  bool add_prefix_space = false;
  Join join = Join::Spaces;
  std::string join_prefix = "##";
  bool join_cleanup = true;
  Template single{{{Template::Part::Kind::First}}};
  Template pair{{{Template::Part::Kind::First}, {Template::Part::Kind::Second, 0, 1}}};
  std::optional<std::string> pad_token;

  /// brasa::Error that begins with `source` for a token whose number another one has.
  void add_tokens(std::vector<AddedToken> tokens, const std::string& source);

  std::vector<int64_t> ids_of(std::string_view text) const;
  Encoding encode(std::string_view first, const std::string_view* second, const EncodeOptions& options) const;
  std::string decode(IntArrayRef ids, bool skip_special_tokens) const;

 private:
  void encode_segment(std::string_view text, std::vector<int64_t>& ids) const;

  AddedTokens raw_, normalized_;
  std::set<int64_t> special_;
  std::map<int64_t, std::string>
      written_;  // tokens that decode writes otherwise: as they are found in the normalized text
};

}  // namespace brasa::text
