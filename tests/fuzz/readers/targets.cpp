#include <brasa/cache.h>
#include <brasa/error.h>
#include <brasa/image.h>
#include <brasa/import.h>
#include <brasa/npy.h>
#include <brasa/pickle.h>
#include <brasa/safetensors.h>
#include <brasa/serialize.h>
#include <brasa/tokenizer.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include "compiler/kernels/disk_cache.h"
#include "compiler/loops/ops.h"
#include "compiler/version.h"
#include "export/alone/npy.h"
#include "export/alone/safetensors.h"
#include "fuzz/readers/target.h"
#include "ir/legality.h"
#include "ir/schema.h"
#include "ir/text.h"
#include "ops/builder.h"
#include "ops/table.h"
#include "program/program.h"
#include "runtime/device.h"
#include "runtime/image.h"
#include "support/hash.h"
#include "support/str.h"
#include "text/bpe.h"
#include "text/unicode.h"
#include "transforms/derived.h"

namespace brasa::fuzz {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> as_bytes(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

// Whether it is read; false for brasa::Error.
template <class F>
bool is_read(F f) {
  try {
    f();
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Files of tests/data with these ends, small ones.
std::vector<std::string> files(const char* folder, std::vector<std::string> ends, size_t most = 20000) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(BRASA_TEST_DATA) / folder))
    if (std::find(ends.begin(), ends.end(), entry.path().extension().string()) != ends.end() &&
        entry.file_size() <= most)
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  std::vector<std::string> out;
  for (const fs::path& path : found) out.push_back(read(path));
  return out;
}

// A folder of this process, for readers of files.
const fs::path& scratch() {
  static const auto* folder = [] {
    fs::path base = fs::exists("/dev/shm") ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string name = (base / "brasa-fuzz-XXXXXX").string();
    auto* made = new fs::path(::mkdtemp(name.data()));
    std::atexit([] { fs::remove_all(scratch()); });
    return made;
  }();
  return *folder;
}
std::string as_file(std::string_view bytes, const char* name) {
  std::string path = (scratch() / name).string();
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

// --- files ---

bool run_safetensors(std::string_view bytes) {
  return is_read([&] { safetensors::File::parse(as_bytes(bytes)); });
}
std::vector<std::string> seeds_of_safetensors() { return files("safetensors/good", {".safetensors"}); }

bool run_checkpoint(std::string_view bytes) {
  return is_read([&] { pickle::parse(as_bytes(bytes)); });
}
std::vector<std::string> seeds_of_checkpoints() { return files("checkpoints/good", {".pth", ".pt"}); }

bool run_archive(std::string_view bytes) {
  return is_read([&] {
    serialize::InputArchive archive;
    archive.load_from(bytes.data(), bytes.size());
    archive.keys();
  });
}
std::vector<std::string> seeds_of_archives() { return files("checkpoints/good", {".pth", ".pt", ".safetensors"}); }

bool run_index(std::string_view bytes) {
  static const std::string beside = [] {
    std::string file;
    safetensors::Entry a{"a", "", DType::UInt8, {3}, as_bytes("abc")}, b{"b", "", DType::UInt8, {0}, {}};
    safetensors::write([&](const void* p, size_t n) { file.append(static_cast<const char*>(p), n); },
                       std::vector{a, b});
    return as_file(file, "model-1.safetensors");
  }();
  return is_read([&] { load_tensors(as_file(bytes, "index.json")); });
}
std::vector<std::string> seeds_of_indices() {
  return {R"({"metadata": {"total_size": 8}, "weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}})",
          R"({"weight_map": {"b": "model-1.safetensors"}, "x": [[[1, 2.5e3, null, true]]]})"};
}

bool run_npy(std::string_view bytes) {
  return is_read([&] { io::parse_npy(as_bytes(bytes)); });
}
std::vector<std::string> seeds_of_npy() { return files("npy/good", {".npy"}); }

bool run_npz(std::string_view bytes) {
  return is_read([&] { io::parse_npz(as_bytes(bytes)); });
}
std::vector<std::string> seeds_of_npz() { return files("npy/good", {".npz"}); }

// What is read has as many bytes as it says; both ways to turn it.
bool run_picture(std::string_view bytes) {
  return is_read([&] {
    for (bool turned : {false, true}) {
      Tensor image = io::decode_image(as_bytes(bytes), {.apply_exif_orientation = turned});
      volatile uint8_t last = static_cast<const uint8_t*>(image.const_data_ptr())[image.numel() - 1];
      (void)last;
    }
    io::decode_image(as_bytes(bytes), {.mode = io::ImageReadMode::Gray});
  });
}
// With the checksums of its chunks right, as far as there are chunks: what lies behind them is read too.
std::string with_png_checksums(std::string_view bytes) {
  std::string out(bytes);
  auto* data = reinterpret_cast<uint8_t*>(out.data());
  for (size_t at = 8; at + 12 <= out.size();) {
    size_t length = 0;
    for (size_t i = 0; i < 4; ++i) length = length << 8 | data[at + i];
    if (length > out.size() - at - 12) break;
    uLong sum = crc32(0, data + at + 4, static_cast<uInt>(length + 4));
    for (size_t i = 0; i < 4; ++i) data[at + 8 + length + i] = static_cast<uint8_t>(sum >> (24 - 8 * i));
    at += 12 + length;
  }
  return out;
}
// Deflate makes 1032 bytes of one, in each of which are 8 pixels; a palette's have 4 channels.
constexpr size_t kPngTimes = 1032 * 8 * 4;
bool run_png(std::string_view bytes) {
  bool as_it_is = run_picture(bytes), repaired = run_picture(with_png_checksums(bytes));
  return as_it_is || repaired;
}
std::vector<std::string> seeds_of_jpegs() { return files("images/good", {".jpg"}); }
std::vector<std::string> seeds_of_pngs() { return files("images/good", {".png"}); }

// The readers in C of programs that run alone. What they found is looked at, byte for byte, in memory of the file's size.
bool run_stored(std::string_view bytes) {
  std::vector<char> file(bytes.begin(), bytes.end());
  StoredFile stored = read_stored(file.data(), file.size());
  StoredTensor t;
  size_t sum = 0;
  auto look = [&](const char* at, size_t n) {
    for (size_t i = 0; i < n; ++i) sum += static_cast<unsigned char>(at[i]);
  };
  while (next_stored(&stored, &t)) {
    look(t.name, t.name_length);
    look(t.dtype, t.dtype_length);
    look(t.data, t.bytes);
  }
  return !stored.bad && sum < SIZE_MAX;
}
std::vector<std::string> seeds_of_stored() { return files("checkpoints/good", {".safetensors"}); }

bool run_array(std::string_view bytes) {
  std::vector<char> file(bytes.begin(), bytes.end());
  NpyArray a;
  if (!read_npy(file.data(), file.size(), &a)) return false;
  size_t wanted = 4;
  for (int d = 0; d < a.rank; ++d)
    if (__builtin_mul_overflow(wanted, static_cast<size_t>(a.sizes[d]), &wanted)) return true;
  std::vector<char> to(a.bytes);
  if (wanted == a.bytes) copy_npy(to.data(), &a, 4);
  return true;
}

bool run_exported_program(std::string_view bytes) {
  return is_read([&] { io::load_pt2(as_file(bytes, "program.pt2")); });
}
std::vector<std::string> seeds_of_exported_programs() { return files("models", {".pt2"}); }

// A tokenizer, and what it makes of two texts. A text's tokens are numbers that the tokenizer knows.
bool run_tokenizer(std::string_view bytes) {
  return is_read([&] {
    text::Tokenizer t = text::Tokenizer::parse(bytes);
    for (const char* s : {"I'll say Ünder [MASK] \xff 12.", "   aaaaaaaa\n"}) t.decode(t.encode(s, "ab").ids, true);
  });
}
std::vector<std::string> seeds_of_tokenizers() {
  return {
      R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2,"Ġ":3,"Ġa":4,"<m>":5},"merges":["a b",["Ġ","a"]],"unk_token":"a"},
 "added_tokens":[{"id":5,"content":"<m>","special":true,"lstrip":true,"normalized":false}],
 "pre_tokenizer":{"type":"ByteLevel","add_prefix_space":true},"decoder":{"type":"ByteLevel"},
 "post_processor":{"type":"RobertaProcessing","sep":["a",0],"cls":["<m>",5]}})",
      R"({"model":{"type":"WordPiece","vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"a":3,"##b":4},"max_input_chars_per_word":9},
 "added_tokens":[{"id":2,"content":"[CLS]","special":true},{"id":7,"content":"New","normalized":true}],
 "normalizer":{"type":"BertNormalizer","lowercase":true,"strip_accents":null},
 "pre_tokenizer":{"type":"BertPreTokenizer"},"decoder":{"type":"WordPiece","prefix":"##"},
 "post_processor":{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"[CLS]","type_id":0}},{"Sequence":{"id":"A"}}],
 "pair":[{"Sequence":{"id":"A"}},{"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"[CLS]":{"ids":[2,2]}}}})"};
}

// Any text: GPT-2's tokens are its bytes, and BERT's are some.
bool run_text(std::string_view bytes) {
  static const text::Tokenizer gpt2 = [] {
    std::string vocabulary = "\"\u0120a\":256";
    for (int b = 0; b < 256; ++b) {
      char c = static_cast<char>(b);
      std::string written = text::written_bytes({&c, 1});
      if (c == '"' || c == '\\') written = "\\" + written;
      vocabulary += ",\"" + written + "\":" + std::to_string(b);
    }
    return text::Tokenizer::parse(
        "{\"model\":{\"vocab\":{" + vocabulary + "},\"merges\":[\"\u0120 a\"]}," +
        R"("pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"decoder":{"type":"ByteLevel"}})");
  }();
  static const text::Tokenizer bert = text::Tokenizer::parse(seeds_of_tokenizers()[1]);
  if (gpt2.decode(gpt2.encode(bytes).ids) != text::well_formed(bytes))
    throw std::logic_error("decode is not the reverse of encode");
  bert.decode(bert.encode(bytes).ids);
  return true;
}
std::vector<std::string> seeds_of_texts() {
  return {"I'll say  it's 12x3!?\n\n <b> \xc2\xa0", "Größe, naïve café; İstanbul ΣΑΣ", "猫は眠っています。고양이 החתול",
          "👩‍👩‍👧 e\xcc\x81\xcc\xa3 \xe3\x80\xae [CLS]New"};
}

// --- caches ---

std::string image() {
  runtime::KernelImage image;
  image.target = "x86-64+avx2";
  image.entries = {{"k" + std::string(32, 'a'), 0}, {"k" + std::string(32, 'b'), 16}};
  image.code.assign(64, 0xc3);
  return image.serialize();
}
// Bytes whose checksum is right, as far as there is one: what lies behind it is read too.
std::string with_checksum(std::string_view bytes) {
  std::string out(bytes);
  constexpr size_t kAt = 8, kAfter = 16;
  if (out.size() < kAfter) return out;
  uint64_t sum = hash_bytes(out.data() + kAfter, out.size() - kAfter), size = out.size();
  if (out.size() >= kAfter + 8) {
    std::memcpy(out.data() + kAfter, &size, sizeof size);
    sum = hash_bytes(out.data() + kAfter, out.size() - kAfter);
  }
  std::memcpy(out.data() + kAt, &sum, sizeof sum);
  return out;
}
bool run_image(std::string_view bytes) {
  bool read = false;
  for (const std::string& b : {std::string(bytes), with_checksum(bytes)})
    read = is_read([&] {
      runtime::KernelImage image = runtime::KernelImage::parse(b);
      runtime::host().load(image);
      if (runtime::KernelImage::parse(image.serialize()).serialize() != image.serialize())
        throw std::logic_error("an image changes when it is written");
    });
  return read;
}
std::vector<std::string> seeds_of_images() { return {image()}; }

const std::string kKey = "k" + std::string(32, 'a');
compiler::DiskCache& cache() {
  static auto* made = new compiler::DiskCache((scratch() / "cache").string(), uint64_t{1} << 30);
  return *made;
}
// An entry is what was written, or a miss.
bool run_entry(std::string_view bytes) {
  fs::path folder = scratch() / "cache" / std::string(compiler::kCompilerVersion);
  static const bool made = [&] {
    fs::create_directories(folder);
    return true;
  }();
  (void)made;
  std::ofstream(folder / kKey, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  auto got = cache().read(kKey);
  if (got && *got != "an entry of the cache" && *got != image()) throw std::logic_error("an entry that nobody wrote");
  return got.has_value();
}
std::vector<std::string> seeds_of_entries() {
  std::vector<std::string> out;
  for (const std::string& content : {std::string("an entry of the cache"), image()}) {
    cache().write(kKey, content);
    out.push_back(read(scratch() / "cache" / std::string(compiler::kCompilerVersion) / kKey));
  }
  return out;
}

// --- texts ---

const ir::Op* find_op(std::string_view name) {
  if (const ir::Op* op = compiler::find_loop_level_op(name)) return op;
  return transforms::find_row(name);
}

// What is read prints to a text that reads to itself, and is checked without a crash.
bool run_graph(std::string_view text) {
  return is_read([&] {
    std::vector<ir::Fact> facts;
    std::unique_ptr<ir::Graph> graph = ir::parse(text, find_op, &facts);
    std::string printed = ir::print(*graph, facts);
    std::vector<ir::Fact> again;
    std::unique_ptr<ir::Graph> reread = ir::parse(printed, find_op, &again);
    if (std::string second = ir::print(*reread, again); second != printed)
      throw std::logic_error("what was read does not print what is read:\n" + printed + second);
    try {
      ir::check_legal(*graph);
    } catch (const InternalError&) {  // it is not legal
    }
  });
}
std::vector<std::string> seeds_of_graphs() {
  std::vector<std::string> out = {R"(graph operators "two" {
  symbols s0>=2, s1>=0/8, s2>=0
  where [s2 == s1, s0 != s1]
  %0 = input: f32[s0, s1] "x" strides=[s1, 1]
  %1 = input: f32[s0, s2] "y"
  %2 = aten::add.Tensor(%0, %1, alpha=2): f32[s0, s1]
  %3 = aten::max.dim(%2, dim=1): (f32[s0], i64[s0])
  %4 = aten::cat([%3, %3], dim=0): f32[2*s0]
  return %4, %3.1, %2 -> 0
})",
                                  R"(graph primitives "sizes" {
  symbols s0>=1, s1>=0
  let [e0 = max(s0, floordiv(s1 + 3, 2)), e1 = min(e0, mod(s0, 7))]
  %0 = input: f32[s0, s1] "x"
  %1 = prim::reduce(%0, dims=[1], combiner="add"): f32[s0]
  %2 = prim::full(1.5, size=[s0], dtype=f32): f32[s0]
  %3 = prim::tanh(%1): f32[s0]
  return %3, %2
})"};
  // The kernels that tests keep.
  for (const auto& entry : fs::directory_iterator(fs::path(BRASA_TEST_DATA).parent_path() / "compiler/golden")) {
    std::string text = read(entry.path());
    for (size_t at = text.find("graph "); at != text.npos; at = text.find("\ngraph ", at + 1)) {
      size_t begin = text[at] == '\n' ? at + 1 : at, end = text.find("\n}", begin);
      if (end != text.npos && end - begin < 4000) out.push_back(text.substr(begin, end + 2 - begin));
    }
  }
  return out;
}

bool run_program(std::string_view text) {
  return is_read([&] {
    program::Program p = program::parse(text, transforms::find_row);
    std::string printed = program::print(p);
    if (program::print(program::parse(printed, transforms::find_row)) != printed)
      throw std::logic_error("what was read does not print what is read:\n" + printed);
  });
}
std::vector<std::string> seeds_of_programs() {
  return {"program on cpu gives output 0, input 0, nothing, output 1\n" + seeds_of_graphs()[0]};
}

bool run_schema(std::string_view text) {
  return is_read([&] {
    std::string printed = str(ir::parse_schema(text));
    if (str(ir::parse_schema(printed)) != printed)
      throw std::logic_error("what was read does not print what is read: " + printed);
  });
}
std::vector<std::string> seeds_of_schemas() {
  std::vector<std::string> out;
  for (const ops::Row& row : ops::table().rows()) out.push_back(str(row.schema));
  return out;
}

const Target kTargets[] = {
    {"safetensors", run_safetensors, seeds_of_safetensors, false},
    {"checkpoint", run_checkpoint, seeds_of_checkpoints, false},
    {"archive", run_archive, seeds_of_archives, false},
    {"pt2", run_exported_program, seeds_of_exported_programs, false},
    {"npy", run_npy, seeds_of_npy, false},
    {"npz", run_npz, seeds_of_npz, false},
    {"jpeg", run_picture, seeds_of_jpegs, false},
    {"png", run_png, seeds_of_pngs, false, kPngTimes},
    {"alone_safetensors", run_stored, seeds_of_stored, false},
    {"alone_npy", run_array, seeds_of_npy, false},
    {"tokenizer", run_tokenizer, seeds_of_tokenizers, true},
    {"text", run_text, seeds_of_texts, false},
    {"index", run_index, seeds_of_indices, true},
    {"image", run_image, seeds_of_images, false},
    {"cache", run_entry, seeds_of_entries, false},
    {"graph", run_graph, seeds_of_graphs, true},
    {"program", run_program, seeds_of_programs, true},
    {"schema", run_schema, seeds_of_schemas, true},
};

}  // namespace

std::span<const Target> targets() { return kTargets; }

const Target& target(std::string_view name) {
  for (const Target& t : kTargets)
    if (name == t.name) return t;
  throw std::invalid_argument("there is no target " + std::string(name));
}

}  // namespace brasa::fuzz
