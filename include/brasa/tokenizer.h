#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <brasa/tensor.h>

/// Texts as numbers of a vocabulary, and back: byte-level BPE as GPT-2 has it, WordPiece as BERT has it.
namespace brasa::text {

enum class Side : uint8_t { Right, Left };
enum class Truncation : uint8_t {
  LongestFirst,  ///< of two texts the longer one, until they fit
  OnlyFirst,
  OnlySecond
};
enum class Padding : uint8_t {
  Longest,    ///< to the longest text of the batch
  MaxLength,  ///< to `max_length`
  None
};

/// How texts become numbers; the names and meanings are those of transformers.
struct EncodeOptions {
  bool special_tokens = true;              ///< those that the tokenizer puts around texts: [CLS] and [SEP] of BERT
  std::optional<int64_t> max_length = {};  ///< with the special tokens; what is more is cut off
  Truncation truncation = Truncation::LongestFirst;
  Side truncation_side = Side::Right;
  // Of batches.
  Padding padding = Padding::Longest;
  Side padding_side = Side::Right;
  std::optional<std::string> pad_token = {};  ///< [PAD] by default where there is one
  int64_t multiple_of = 1;                    ///< of the padded length
};

/// One text, or a pair of texts.
struct Encoding {
  std::vector<int64_t> ids;
  std::vector<int64_t> type_ids;  ///< 0 in the first text and its special tokens, 1 in the second
};

/// Int64 [texts, length] each; the mask is 1 at tokens and 0 at padding.
struct Batch {
  Tensor input_ids, attention_mask, token_type_ids;
};

struct BertOptions {
  bool lowercase = true;
  std::optional<bool> strip_accents = {};  ///< as `lowercase` by default
  bool split_chinese = true;               ///< each Chinese character is a word
};

class Pipeline;

/// Copies share what they hold. All threads may use one.
class BRASA_API Tokenizer {
 public:
  /// A `tokenizer.json` of the kinds BPE (byte-level) and WordPiece, or a folder with one, with `vocab.json` and `merges.txt` (GPT-2), or with
  /// `vocab.txt` (BERT, lower-case). brasa::Error for a file that is malformed or needs what is not there, with its name. The file's truncation and
  /// padding are not applied: each call says its own.
  static Tokenizer load(const std::string& path);
  /// A `tokenizer.json` in memory, which `source` names in errors.
  static Tokenizer parse(std::string_view json, const std::string& source = "tokenizer.json");
  static Tokenizer gpt2(const std::string& vocab_json, const std::string& merges_txt, bool add_prefix_space = false);
  static Tokenizer bert(const std::string& vocab_txt, const BertOptions& options = {});

  /// Texts are UTF-8; what is not well-formed in them counts as U+FFFD. brasa::Error if the special tokens do not fit into `max_length`.
  Encoding encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;
  Batch encode_batch(std::span<const std::string> texts, const EncodeOptions& options = {}) const;
  /// brasa::Error unless there are as many second texts as first ones.
  Batch encode_batch(std::span<const std::string> first, std::span<const std::string> second,
                     const EncodeOptions& options = {}) const;

  /// The text of these tokens; numbers that no token has are left out. Bytes that are no UTF-8 become U+FFFD.
  std::string decode(IntArrayRef ids, bool skip_special_tokens = false) const;
  /// Of a tensor of integers with one dimension.
  std::string decode(const Tensor& ids, bool skip_special_tokens = false) const;

  /// How many tokens there are.
  int64_t size() const;
  std::optional<int64_t> id_of(std::string_view token) const;
  /// As it is in the vocabulary: "Ġthe", "##ing". brasa::Error if there is none.
  const std::string& token_of(int64_t id) const;

 private:
  explicit Tokenizer(std::shared_ptr<const Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}
  std::shared_ptr<const Pipeline> pipeline_;
};

}  // namespace brasa::text
