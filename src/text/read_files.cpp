#include <filesystem>

#include "support/error.h"
#include "support/mapped_file.h"
#include "text/bpe.h"
#include "text/read.h"

// The files that GPT-2 and BERT came with, and which of them a folder has.
namespace brasa::text {
namespace {

namespace fs = std::filesystem;

class File {
 public:
  explicit File(const std::string& path) : mapped_(map_file(path)) {}
  std::string_view text() const { return {reinterpret_cast<const char*>(mapped_.bytes.data()), mapped_.bytes.size()}; }
  template <class F>
  void each_line(F f) const {
    for (std::string_view rest = text(); !rest.empty();) {
      size_t end = rest.find('\n');
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
      if (line.ends_with('\r')) line.remove_suffix(1);
      f(line);
    }
  }

 private:
  MappedFile mapped_;
};

void copy_vocabulary(Pipeline& p) {
  for (const auto& [token, id] : p.of_model->ids()) p.vocabulary.set(token, id);
}

}  // namespace

Tokenizer Tokenizer::parse(std::string_view json, const std::string& source) {
  return Tokenizer(pipeline_of(json, source));
}

Tokenizer Tokenizer::gpt2(const std::string& vocab_json, const std::string& merges_txt, bool add_prefix_space) {
  auto p = std::make_shared<Pipeline>();
  read_vocabulary(parse_json(File(vocab_json).text(), vocab_json, 2), *p->of_model, vocab_json);
  copy_vocabulary(*p);
  std::vector<std::pair<std::string, std::string>> merges;
  File(merges_txt).each_line([&](std::string_view line) {
    if (line.empty() || line.starts_with("#version")) return;
    size_t space = line.find(' ');
    BRASA_CHECK(space != line.npos, merges_txt, ": merge ", merges.size(), " is no pair: '", line, "'");
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  });
  p->words = Pipeline::Words::Gpt2;
  p->join = Pipeline::Join::Bytes;
  p->add_prefix_space = add_prefix_space;
  p->model = std::make_unique<ByteLevelBpe>(*p->of_model, merges, ByteLevelBpe::Options(), merges_txt);
  std::vector<AddedToken> special;
  if (auto id = p->vocabulary.id_of("<|endoftext|>")) special.push_back({"<|endoftext|>", *id});
  p->add_tokens(std::move(special), vocab_json);
  return Tokenizer(std::move(p));
}

Tokenizer Tokenizer::bert(const std::string& vocab_txt, const BertOptions& options) {
  auto p = std::make_shared<Pipeline>();
  int64_t id = 0;
  File(vocab_txt).each_line([&](std::string_view line) { p->of_model->set(std::string(line), id++); });
  copy_vocabulary(*p);
  p->normalizer = BertNormalizer{true, options};
  p->words = Pipeline::Words::Bert;
  p->join = Pipeline::Join::Pieces;
  p->model = std::make_unique<WordPiece>(*p->of_model, WordPiece::Options(), vocab_txt);
  std::vector<AddedToken> special;
  for (const char* token : {"[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"})
    if (auto number = p->vocabulary.id_of(token)) special.push_back({token, *number});
  p->add_tokens(std::move(special), vocab_txt);
  auto cls = p->vocabulary.id_of("[CLS]"), sep = p->vocabulary.id_of("[SEP]");
  BRASA_CHECK(cls && sep, vocab_txt, ": the vocabulary has not both [CLS] and [SEP]");
  using Kind = Template::Part::Kind;
  p->single.parts = {{Kind::Token, *cls}, {Kind::First}, {Kind::Token, *sep}};
  p->pair.parts = p->single.parts;
  p->pair.parts.push_back({Kind::Second, 0, 1});
  p->pair.parts.push_back({Kind::Token, *sep, 1});
  if (p->vocabulary.id_of("[PAD]")) p->pad_token = "[PAD]";
  return Tokenizer(std::move(p));
}

Tokenizer Tokenizer::load(const std::string& path) {
  if (!fs::is_directory(path)) return parse(File(path).text(), path);
  auto in = [&](const char* name) { return (fs::path(path) / name).string(); };
  if (fs::exists(in("tokenizer.json"))) return parse(File(in("tokenizer.json")).text(), in("tokenizer.json"));
  if (fs::exists(in("vocab.json")) && fs::exists(in("merges.txt"))) return gpt2(in("vocab.json"), in("merges.txt"));
  if (fs::exists(in("vocab.txt"))) return bert(in("vocab.txt"));
  fail(str(path, ": the folder has no tokenizer.json, no vocab.json with merges.txt, and no vocab.txt"));
}

}  // namespace brasa::text
