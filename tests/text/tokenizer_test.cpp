#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/tokenizer.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <random>

#include "error_of.h"
#include "support/json.h"
#include "text/bpe.h"
#include "text/unicode.h"

namespace brasa::text {
namespace {

namespace fs = std::filesystem;
using Ids = std::vector<int64_t>;

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("brasa_tokens_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(path / name, std::ios::binary) << content;
    return (path / name).string();
  }
  fs::path path;
};

constexpr const char* kBertVocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\ncat\ndog\n##s\nsleep\n##ing\n.\n,\ncafe\n猫\n'\nt\n";

Tokenizer bert(const Folder& folder, const BertOptions& options = {}) {
  return Tokenizer::bert(folder.file("vocab.txt", kBertVocabulary), options);
}

// The 256 bytes, and what these merges make.
nlohmann::json bpe_vocabulary(const std::vector<std::pair<std::string, std::string>>& merges) {
  nlohmann::json out;
  for (int b = 0; b < 256; ++b) {
    char c = static_cast<char>(b);
    out[written_bytes({&c, 1})] = b;
  }
  for (const auto& [a, b] : merges) out.emplace(a + b, out.size());
  return out;
}

Tokenizer gpt2(const Folder& folder, const std::vector<std::pair<std::string, std::string>>& merges) {
  std::string list = "#version: 0.2\n";
  for (const auto& [a, b] : merges) list += a + " " + b + "\n";
  nlohmann::json vocabulary = bpe_vocabulary(merges);
  vocabulary["<|endoftext|>"] = 1000;
  return Tokenizer::gpt2(folder.file("vocab.json", vocabulary.dump()), folder.file("merges.txt", list));
}

std::vector<std::string> tokens_of(const Tokenizer& t, std::string_view text) {
  std::vector<std::string> out;
  for (int64_t id : t.encode(text).ids) out.push_back(t.token_of(id));
  return out;
}

TEST(Bert, WordsAreTheirLongestPieces) {
  Folder folder;
  Tokenizer t = bert(folder);
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens_of(t, "Cats sleeping."), (Tokens{"[CLS]", "cat", "##s", "sleep", "##ing", ".", "[SEP]"}));
  EXPECT_EQ(tokens_of(t, "a cation \t CAFÉ,can't"),
            (Tokens{"[CLS]", "a", "[UNK]", "cafe", ",", "[UNK]", "'", "t", "[SEP]"}));
  EXPECT_EQ(tokens_of(t, "a猫a"), (Tokens{"[CLS]", "a", "猫", "a", "[SEP]"}));
  EXPECT_EQ(tokens_of(t, "a[MASK]a [mask]"), (Tokens{"[CLS]", "a", "[MASK]", "a", "[UNK]", "[UNK]", "[UNK]", "[SEP]"}));
  EXPECT_EQ(tokens_of(t,
                      "c\xe2\x80\x8b"
                      "a\x07t"),
            (Tokens{"[CLS]", "cat", "[SEP]"}));                           // formats and controls go
  EXPECT_EQ(tokens_of(t, "cat\xff"), (Tokens{"[CLS]", "cat", "[SEP]"}));  // U+FFFD goes
  EXPECT_EQ(tokens_of(t, std::string(101, 'a')), (Tokens{"[CLS]", "[UNK]", "[SEP]"}));
  EXPECT_EQ(tokens_of(t, ""), (Tokens{"[CLS]", "[SEP]"}));
  EXPECT_EQ(tokens_of(bert(folder, {.lowercase = false}), "Cat café"), (Tokens{"[CLS]", "[UNK]", "[UNK]", "[SEP]"}));
  EXPECT_EQ(t.size(), 17);
  EXPECT_EQ(t.id_of("cat"), 6);
  EXPECT_FALSE(t.id_of("cow"));
  EXPECT_THROW(t.token_of(99), Error);
}

TEST(Bert, DecodedTextHasItsSpacesBack) {
  Folder folder;
  Tokenizer t = bert(folder);
  EXPECT_EQ(t.decode(Ids{2, 6, 8, 9, 10, 11, 3, 0}, true), "cats sleeping.");
  EXPECT_EQ(t.decode(Ids{2, 6, 3, 77, -1}), "[CLS] cat [SEP]");
  EXPECT_EQ(t.decode(tensor({6, 8}).to(kInt32), true), "cats");
  EXPECT_THROW(t.decode(ones({2})), Error);
  EXPECT_THROW(t.decode(ones({2, 2}, kInt64)), Error);
}

TEST(Bert, PairsAreCutTheLongerFirst) {
  Folder folder;
  Tokenizer t = bert(folder);
  Encoding e = t.encode("a cat", "dog");
  EXPECT_EQ(e.ids, (Ids{2, 5, 6, 3, 7, 3}));
  EXPECT_EQ(e.type_ids, (Ids{0, 0, 0, 0, 1, 1}));
  EXPECT_EQ(t.encode("a a a a a a", "dog dog", {.max_length = 8}).ids, (Ids{2, 5, 5, 5, 3, 7, 7, 3}));
  EXPECT_EQ(t.encode("a a a a a a", "dog dog dog dog", {.max_length = 8}).ids, (Ids{2, 5, 5, 5, 3, 7, 7, 3}));
  EXPECT_EQ(t.encode("a cat dog", {.max_length = 4, .truncation_side = Side::Left}).ids, (Ids{2, 6, 7, 3}));
  EXPECT_EQ(t.encode("a cat", "dog", {.max_length = 5, .truncation = Truncation::OnlyFirst}).ids, (Ids{2, 5, 3, 7, 3}));
  EXPECT_EQ(t.encode("a cat", "dog", {.special_tokens = false, .max_length = 2}).ids, (Ids{5, 7}));
  EXPECT_NE(
      error_of([&] { t.encode("a", "dog", {.max_length = 4, .truncation = Truncation::OnlySecond}); }).find("too many"),
      std::string::npos);
  EXPECT_NE(error_of([&] { t.encode("a", {.max_length = 1}); }).find("no room for the 2 special tokens"),
            std::string::npos);
}

TEST(Bert, ABatchIsPaddedTensors) {
  Folder folder;
  Tokenizer t = bert(folder);
  std::vector<std::string> texts{"a cat", "dog"}, others{"dog", "a cat"};
  Batch b = t.encode_batch(texts);
  EXPECT_TRUE(b.input_ids.equal(tensor({2, 5, 6, 3, 2, 7, 3, 0}).view({2, 4}).to(kInt64)));
  EXPECT_TRUE(b.attention_mask.equal(tensor({1, 1, 1, 1, 1, 1, 1, 0}).view({2, 4}).to(kInt64)));
  EXPECT_EQ(b.token_type_ids.sum().item<int64_t>(), 0);
  b = t.encode_batch(texts, {.max_length = 6, .padding = Padding::MaxLength, .padding_side = Side::Left});
  EXPECT_TRUE(b.input_ids[1].equal(tensor({0, 0, 0, 2, 7, 3}).to(kInt64)));
  EXPECT_TRUE(b.attention_mask[1].equal(tensor({0, 0, 0, 1, 1, 1}).to(kInt64)));
  EXPECT_EQ(t.encode_batch(texts, {.multiple_of = 8}).input_ids.size(1), 8);
  EXPECT_EQ(t.encode_batch(texts, others).token_type_ids.sum().item<int64_t>(), 2 + 3);
  EXPECT_EQ(t.encode_batch(std::vector<std::string>{}).input_ids.size(0), 0);
  EXPECT_NE(error_of([&] { t.encode_batch(texts, {.padding = Padding::None}); }).find("different lengths"),
            std::string::npos);
  EXPECT_THROW(t.encode_batch(texts, std::vector<std::string>{"a"}), Error);
  EXPECT_THROW(t.encode_batch(texts, {.pad_token = "cow"}), Error);
}

TEST(Gpt2, WordsAreThoseOfItsPattern) {
  auto words = [](std::string_view text) {
    std::vector<std::string_view> out;
    split_gpt2(text, out);
    return std::vector<std::string>(out.begin(), out.end());
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(words("I'll say  it's 12x3!?"), (Words{"I", "'ll", " say", " ", " it", "'s", " 12", "x", "3", "!?"}));
  EXPECT_EQ(words("a \n\n b  "), (Words{"a", " \n\n", " b", "  "}));
  EXPECT_EQ(words("a\n\nb"), (Words{"a", "\n", "\n", "b"}));
  EXPECT_EQ(words("!'s 'S ' é½😀"), (Words{"!'", "s", " '", "S", " '", " é", "½", "😀"}));
  EXPECT_EQ(words("\xc2\xa0\xc2\xa0z"), (Words{"\xc2\xa0", "\xc2\xa0", "z"}));
  EXPECT_EQ(words(""), Words());
}

TEST(Gpt2, TheEarliestMergeGoesFirst) {
  Folder folder;
  Tokenizer t = gpt2(folder, {{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"Ġ", "he"}, {"a", "a"}});
  using Tokens = std::vector<std::string>;
  EXPECT_EQ(tokens_of(t, "hello he"), (Tokens{"hell", "o", "Ġhe"}));
  EXPECT_EQ(tokens_of(t, "aaaaa"), (Tokens{"aa", "aa", "a"}));
  EXPECT_EQ(tokens_of(t, "he<|endoftext|>he"), (Tokens{"he", "<|endoftext|>", "he"}));
  EXPECT_EQ(t.decode(t.encode("hello <|endoftext|> ü").ids), "hello <|endoftext|> ü");
  EXPECT_EQ(t.decode(t.encode("hello <|endoftext|> ü").ids, true), "hello  ü");
  EXPECT_EQ(t.decode(Ids{0xc3}), "\xef\xbf\xbd");
  std::vector<std::string> texts{"he", "hello"};
  EXPECT_NE(error_of([&] { t.encode_batch(texts); }).find("no token for padding"), std::string::npos);
  EXPECT_EQ(t.encode_batch(texts, {.pad_token = "<|endoftext|>"}).input_ids[0][1].item<int64_t>(), 1000);
}

// Whatever a text is, its tokens are it.
TEST(Gpt2, DecodeIsTheReverseOfEncode) {
  Folder folder;
  Tokenizer t = gpt2(folder, {{"Ã", "¤"}, {"Ġ", "a"}, {"a", "b"}, {"Ġa", "b"}, {"ð", "Ł"}});
  std::mt19937 random(1);
  const char* pieces[] = {"ä",  " a", "ab", "😀", "\xff",     "\xf0\x9f",    "  ",
                          "\n", "'s", "9",  "中", "\xcc\x81", "\xed\xa0\x80"};
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (size_t n = random() % 20; n > 0; --n) text += pieces[random() % std::size(pieces)];
    EXPECT_EQ(t.decode(t.encode(text).ids), well_formed(text));
  }
}

// The merges of a word take time n log n, and looking for tokens in a text the length of the longest for each byte at most.
TEST(Tokenizer, LongTextsTakeLittleTime) {
  Folder folder;
  Tokenizer t = gpt2(folder, {{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}, {"b", "a"}});
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(t.encode(std::string(1 << 18, 'a')).ids.size(), size_t{1} << 15);
  std::string marks = "a", spaces(1 << 18, ' ');
  for (int i = 0; i < 1 << 16; ++i)
    marks += i % 2 ? "\xcc\x81" : "\xe3\x80\xae";  // of two combining classes; the second stays
  EXPECT_EQ(bert(folder).encode(marks).ids.size(), 3u);
  EXPECT_EQ(bert(folder).encode(spaces).ids.size(), 2u);
  EXPECT_EQ(t.encode(spaces).ids.size(), spaces.size());
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count(), 5);
}

nlohmann::json bert_file() {
  return nlohmann::json::parse(R"({"version": "1.0", "truncation": null, "padding": null,
    "added_tokens": [{"id": 0, "content": "[CLS]", "special": true, "normalized": false}, {"id": 9, "content": "New", "special": false},
                     {"id": 8, "content": "<m>", "special": true, "normalized": false, "lstrip": true, "rstrip": true}],
    "normalizer": {"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": true},
    "pre_tokenizer": {"type": "BertPreTokenizer"},
    "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
      "special_tokens": {"[CLS]": {"id": "[CLS]", "ids": [0], "tokens": ["[CLS]"]}}},
    "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": true},
    "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 100,
      "vocab": {"[CLS]": 0, "[UNK]": 1, "a": 2, "##b": 3}}})");
}

TEST(TokenizerJson, OfBert) {
  Tokenizer t = Tokenizer::parse(bert_file().dump());
  EXPECT_EQ(t.encode("Ab").ids, (Ids{0, 2, 3}));
  EXPECT_EQ(t.encode("a", "ab").type_ids, (Ids{0, 1, 1}));
  EXPECT_EQ(t.encode("a \n<m>  a").ids, (Ids{0, 2, 8, 2}));
  EXPECT_EQ(t.encode("a neW [CLS]").ids, (Ids{0, 2, 9, 0}));
  EXPECT_EQ(t.decode(Ids{0, 2, 3, 8}, true), "ab");
}

TEST(TokenizerJson, OfGpt2WithMergesInBothForms) {
  for (bool pairs : {false, true}) {
    nlohmann::json file = {{"model", {{"type", "BPE"}, {"vocab", bpe_vocabulary({{"a", "b"}})}}},
                           {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", true}}},
                           {"decoder", {{"type", "ByteLevel"}}}};
    file["model"]["merges"] = pairs ? nlohmann::json::parse(R"([["a", "b"]])") : nlohmann::json::parse(R"(["a b"])");
    Tokenizer t = Tokenizer::parse(file.dump());
    EXPECT_EQ(t.encode("abä").ids, (Ids{' ', 256, 0xc3, 0xa4}));
    EXPECT_EQ(t.decode(Ids{256, 0xc3, 0xa4}), "abä");
  }
}

TEST(TokenizerJson, WhatIsNotThereIsNamed) {
  struct Case {
    const char *at, *value, *says;
  } cases[] = {
      {"/normalizer/type", R"("NFKC")", "the normalizer 'NFKC' is not known"},
      {"/pre_tokenizer/type", R"("Metaspace")", "the pre-tokenizer 'Metaspace' is not known"},
      {"/pre_tokenizer", "null", "pre-tokenizer"},
      {"/model/type", R"("Unigram")", "the model 'Unigram' is not known"},
      {"/model/unk_token", R"("<u>")", "'<u>' is not in the vocabulary"},
      {"/model/vocab", "[]", "no object of tokens and numbers"},
      {"/model/vocab/a", "-1", "'a'"},
      {"/model/max_input_chars_per_word", "1e3", "max_input_chars_per_word"},
      {"/decoder/type", R"("BPEDecoder")", "the decoder 'BPEDecoder' is not known"},
      {"/post_processor/type", R"("X")", "the post-processor 'X' is not known"},
      {"/post_processor/single", "[]", "each text once"},
      {"/post_processor/special_tokens", "{}", "'[CLS]' has no numbers"},
      {"/added_tokens/1/single_word", "true", "'New' asks for single words"},
      {"/added_tokens/1/id", "2", "has the number 2 of 'a'"},
      {"/added_tokens/1/content", R"("")", "an added token of 0 bytes"},
  };
  for (const Case& c : cases) {
    nlohmann::json file = bert_file();
    file[nlohmann::json::json_pointer(c.at)] = nlohmann::json::parse(c.value);
    std::string message = error_of([&] { Tokenizer::parse(file.dump(), "t.json"); });
    EXPECT_EQ(message.find("t.json: "), 0u) << c.at << ": " << message;
    EXPECT_NE(message.find(c.says), std::string::npos) << c.at << ": " << message;
  }
  EXPECT_NE(error_of([] { Tokenizer::parse("{"); }), "");
  EXPECT_NE(error_of([] { Tokenizer::parse(std::string(100000, '[')); }).find("too deep"), std::string::npos);
}

TEST(TokenizerFiles, WhatIsWrongIsNamed) {
  Folder folder;
  std::string vocabulary = folder.file("vocab.json", R"({"a": 0, "b": 1})");
  EXPECT_NE(error_of([&] {
              Tokenizer::gpt2(vocabulary, folder.file("merges.txt", "a b\n"));
            }).find("'ab' is not in the vocabulary"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Tokenizer::gpt2(vocabulary, folder.file("merges.txt", "ab\n")); }).find("no pair"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Tokenizer::bert(folder.file("vocab.txt", "[CLS]\n[UNK]\n")); }).find("[SEP]"),
            std::string::npos);
  fs::create_directories(folder.path / "none");
  EXPECT_NE(error_of([&] { Tokenizer::load((folder.path / "none").string()); }).find("no tokenizer.json"),
            std::string::npos);
  folder.file("merges.txt", "");
  EXPECT_EQ(Tokenizer::load(folder.path.string()).encode("ab").ids, (Ids{0, 1}));
}

}  // namespace
}  // namespace brasa::text
