#include <algorithm>

#include "support/error.h"
#include "support/lazy.h"
#include "text/bpe.h"
#include "text/read.h"

// The file of the library `tokenizers`: what it names is looked up among what is here, and anything else is an error with its name.
namespace brasa::text {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMostSpecialTokens = 64;  // around a text
constexpr int64_t kLongestWord = 10000;

class Reader {
 public:
  Reader(const Json& j, std::string source) : file_(j), source_(std::move(source)) {}

  std::shared_ptr<const Pipeline> read() {
    if (!file_.is_object()) error("it is no object");
    normalizer(part("normalizer"));
    words(part("pre_tokenizer"));
    model(part("model"));
    added_tokens(part("added_tokens"));
    join(part("decoder"));
    around(part("post_processor"));
    return std::move(out_);
  }

 private:
  [[noreturn]] void error(const std::string& what) const { fail(str(source_, ": ", what)); }
  [[noreturn]] void unknown(const char* what, const std::string& type, const char* known) const {
    error(str("the ", what, " '", type, "' is not known; ", known));
  }

  const Json& part(const char* name) const { return member(file_, name); }
  const Json& member(const Json& j, const char* name) const {
    static constinit Lazy<Json> none;
    auto at = j.find(name);
    return at == j.end() ? *none : *at;
  }
  std::string text(const Json& j, const char* name, const char* otherwise = nullptr) const {
    const Json& value = member(j, name);
    if (value.is_null() && otherwise) return otherwise;
    if (!value.is_string()) error(str("'", name, "' is no text"));
    return value.get<std::string>();
  }
  bool flag(const Json& j, const char* name, bool otherwise) const {
    const Json& value = member(j, name);
    if (value.is_null()) return otherwise;
    if (!value.is_boolean()) error(str("'", name, "' is neither true nor false"));
    return value.get<bool>();
  }
  int64_t number(const Json& j, const char* name, int64_t otherwise, int64_t most) const {
    const Json& value = member(j, name);
    if (value.is_null()) return otherwise;
    if (!value.is_number_integer() || value < 0 || value > most)
      error(str("'", name, "' is no number from 0 to ", most));
    return value.get<int64_t>();
  }
  std::string type_of(const Json& j, const char* what) const {
    if (!j.is_object()) error(str("the ", what, " is no object"));
    return text(j, "type");
  }

  void normalizer(const Json& j) {
    if (j.is_null()) return;
    if (std::string type = type_of(j, "normalizer"); type != "BertNormalizer")
      unknown("normalizer", type, "BertNormalizer is, and none");
    BertNormalizer n;
    n.clean = flag(j, "clean_text", true);
    n.options.split_chinese = flag(j, "handle_chinese_chars", true);
    n.options.lowercase = flag(j, "lowercase", true);
    if (!member(j, "strip_accents").is_null()) n.options.strip_accents = flag(j, "strip_accents", false);
    out_->normalizer = n;
  }

  void words(const Json& j) {
    std::string type = type_of(j, "pre-tokenizer");
    if (type == "ByteLevel") {
      out_->words = flag(j, "use_regex", true) ? Pipeline::Words::Gpt2 : Pipeline::Words::Bytes;
      out_->add_prefix_space = flag(j, "add_prefix_space", true);
    } else if (type == "BertPreTokenizer") {
      out_->words = Pipeline::Words::Bert;
    } else {
      unknown("pre-tokenizer", type, "ByteLevel and BertPreTokenizer are");
    }
  }

  void model(const Json& j) {
    if (!j.is_object()) error("the model is no object");
    read_vocabulary(member(j, "vocab"), *out_->of_model, source_);
    out_->vocabulary = Vocabulary();
    for (const auto& [token, id] : out_->of_model->ids()) out_->vocabulary.set(token, id);
    bool bytes = out_->words != Pipeline::Words::Bert;
    std::string type = text(j, "type", bytes ? "BPE" : "WordPiece");
    if (type == "BPE" && bytes) return bpe(j);
    if (type == "WordPiece" && !bytes) return word_piece(j);
    unknown("model", type, "BPE with the pre-tokenizer ByteLevel is, and WordPiece with BertPreTokenizer");
  }

  void bpe(const Json& j) {
    if (!member(j, "dropout").is_null() && member(j, "dropout") != 0) error("dropout of merges, which is for training");
    for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
      if (!text(j, affix, "").empty()) error(str("a model with a ", affix));
    if (flag(j, "byte_fallback", false)) error("a model with byte_fallback");
    ByteLevelBpe::Options options;
    options.ignore_merges = flag(j, "ignore_merges", false);
    if (!member(j, "unk_token").is_null()) options.unknown = text(j, "unk_token");
    if (options.unknown && flag(j, "fuse_unk", false)) error("a model with fuse_unk");
    const Json& list = member(j, "merges");
    if (!list.is_array()) error("the model has no list of merges");
    std::vector<std::pair<std::string, std::string>> merges;
    for (const Json& m : list) {
      if (m.is_array() && m.size() == 2 && m[0].is_string() && m[1].is_string()) {
        merges.emplace_back(m[0].get<std::string>(), m[1].get<std::string>());
        continue;
      }
      size_t space = m.is_string() ? m.get_ref<const std::string&>().find(' ') : std::string::npos;
      if (space == std::string::npos) error("a merge that is no pair");
      merges.emplace_back(m.get_ref<const std::string&>().substr(0, space),
                          m.get_ref<const std::string&>().substr(space + 1));
    }
    out_->model = std::make_unique<ByteLevelBpe>(*out_->of_model, merges, std::move(options), source_);
  }

  void word_piece(const Json& j) {
    WordPiece::Options options;
    options.unknown = text(j, "unk_token", "[UNK]");
    options.prefix = text(j, "continuing_subword_prefix", "##");
    options.longest_word = number(j, "max_input_chars_per_word", 100, kLongestWord);
    out_->model = std::make_unique<WordPiece>(*out_->of_model, std::move(options), source_);
    if (out_->vocabulary.id_of("[PAD]")) out_->pad_token = "[PAD]";
  }

  void added_tokens(const Json& list) {
    if (!list.is_null() && !list.is_array()) error("'added_tokens' is no list");
    std::vector<AddedToken> tokens;
    for (const Json& j : list) {
      if (!j.is_object()) error("an added token that is no object");
      AddedToken t{text(j, "content"),          number(j, "id", -1, INT32_MAX), flag(j, "special", false),
                   flag(j, "normalized", true), flag(j, "lstrip", false),       flag(j, "rstrip", false)};
      if (t.id < 0) error(str("the added token '", t.text, "' has no number"));
      if (flag(j, "single_word", false)) error(str("the added token '", t.text, "' asks for single words"));
      tokens.push_back(std::move(t));
    }
    out_->add_tokens(std::move(tokens), source_);
  }

  void join(const Json& j) {
    if (j.is_null()) return;
    std::string type = type_of(j, "decoder");
    if (type == "ByteLevel") {
      out_->join = Pipeline::Join::Bytes;
    } else if (type == "WordPiece") {
      out_->join = Pipeline::Join::Pieces;
      out_->join_prefix = text(j, "prefix", "##");
      out_->join_cleanup = flag(j, "cleanup", true);
    } else {
      unknown("decoder", type, "ByteLevel and WordPiece are");
    }
  }

  void around(const Json& j) {
    if (j.is_null()) return;
    std::string type = type_of(j, "post-processor");
    if (type == "ByteLevel") return;  // it changes places in the text alone
    if (type == "Sequence") {
      const Json& list = member(j, "processors");
      if (!list.is_array()) error("a sequence of post-processors that is no list");
      for (const Json& inner : list) around(inner);
      return;
    }
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      using Kind = Template::Part::Kind;
      Template::Part cls{Kind::Token, special(j, "cls")}, sep{Kind::Token, special(j, "sep")};
      bool roberta = type == "RobertaProcessing";
      int64_t second = roberta ? 0 : 1;
      out_->single.parts = {cls, {Kind::First}, sep};
      out_->pair.parts = out_->single.parts;
      if (roberta) out_->pair.parts.push_back(sep);
      sep.type = second;
      out_->pair.parts.push_back({Kind::Second, 0, second});
      out_->pair.parts.push_back(sep);
      return;
    }
    if (type != "TemplateProcessing")
      unknown("post-processor", type, "TemplateProcessing, BertProcessing, RobertaProcessing and ByteLevel are");
    out_->single = template_of(member(j, "single"), member(j, "special_tokens"), false);
    if (!member(j, "pair").is_null()) out_->pair = template_of(member(j, "pair"), member(j, "special_tokens"), true);
  }

  // ["[CLS]", 101]
  int64_t special(const Json& j, const char* name) const {
    const Json& pair = member(j, name);
    if (!pair.is_array() || pair.size() != 2 || !pair[1].is_number_unsigned())
      error(str("'", name, "' is no token with its number"));
    return pair[1].get<int64_t>();
  }

  Template template_of(const Json& list, const Json& tokens, bool second) const {
    using Kind = Template::Part::Kind;
    if (!list.is_array()) error("a template that is no list");
    Template out;
    int texts[2] = {};
    for (const Json& j : list) {
      const Json& sequence = j.is_object() ? member(j, "Sequence") : j;
      const Json& token = j.is_object() ? member(j, "SpecialToken") : j;
      if (sequence.is_object()) {
        bool is_second = text(sequence, "id") == "B";
        ++texts[is_second];
        out.parts.push_back({is_second ? Kind::Second : Kind::First, 0, number(sequence, "type_id", 0, INT32_MAX)});
      } else if (token.is_object()) {
        std::string id = text(token, "id");
        const Json& ids =
            tokens.is_object() && tokens.contains(id) && tokens[id].is_object() ? member(tokens[id], "ids") : tokens;
        if (!ids.is_array()) error(str("a template's token '", id, "' has no numbers"));
        for (const Json& n : ids) {
          if (!n.is_number_unsigned()) error(str("a template's token '", id, "' has no numbers"));
          out.parts.push_back({Kind::Token, n.get<int64_t>(), number(token, "type_id", 0, INT32_MAX)});
          if (out.parts.size() > kMostSpecialTokens)
            error(str("a template of more than ", kMostSpecialTokens, " tokens"));
        }
      } else {
        error("a template's part that is neither a text nor a token");
      }
      if (out.parts.size() > kMostSpecialTokens) error(str("a template of more than ", kMostSpecialTokens, " parts"));
    }
    if (texts[0] != 1 || texts[1] != (second ? 1 : 0)) error("a template that has not each text once");
    return out;
  }

  const Json& file_;
  std::string source_;
  std::shared_ptr<Pipeline> out_ = std::make_shared<Pipeline>();
};

}  // namespace

void read_vocabulary(const Json& j, Vocabulary& out, const std::string& source) {
  BRASA_CHECK(j.is_object(), source, ": the vocabulary is no object of tokens and numbers");
  for (const auto& [token, id] : j.items()) {
    BRASA_CHECK(id.is_number_unsigned() && id <= INT32_MAX, source, ": the number of token '", token, "' is none");
    out.set(token, id.get<int64_t>());
  }
}

std::shared_ptr<const Pipeline> pipeline_of(std::string_view json, const std::string& source) {
  return Reader(parse_json(json, source, kMaxDepth), source).read();
}

}  // namespace brasa::text
