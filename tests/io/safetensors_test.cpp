#include <brasa/error.h>
#include <brasa/safetensors.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

namespace brasa::safetensors {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(BRASA_TEST_DATA) / "safetensors";

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("brasa_safetensors_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const char* name) const { return (path / name).string(); }
  fs::path path;
};

std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

// A file of this header and that many zero bytes.
std::string with_header(const std::string& header, size_t data) {
  std::string out(8, '\0');
  for (size_t i = 0; i < 8; ++i) out[i] = static_cast<char>(header.size() >> (8 * i));
  return out + header + std::string(data, '\0');
}

std::string error_of(const std::string& file) {
  try {
    File::parse(bytes_of(file), "f");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(SafetensorsRead, RefusesEveryMalformedFile) {
  int count = 0;
  for (const auto& item : fs::directory_iterator(kData / "bad")) {
    EXPECT_THROW(File::open(item.path().string()), Error) << item.path();
    ++count;
  }
  EXPECT_EQ(count, 7);
  EXPECT_THROW(File::open("/does/not/exist.safetensors"), Error);
  EXPECT_THROW(File::open(kData.string()), Error);
}

TEST(SafetensorsRead, MetadataNamesAndEmptyTensors) {
  File f = File::open((kData / "good/metadata.safetensors").string());
  EXPECT_EQ(f.metadata(), (Metadata{{"format", "pt"}, {"note", "ünï \"q\""}}));
  EXPECT_EQ(f.entries().size(), 5u);
  EXPECT_EQ(f.at("b").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(f.at("b").dtype, DType::Float32);
  float first;
  std::memcpy(&first, f.at("b").data.data(), sizeof first);
  EXPECT_FLOAT_EQ(first, 1.0419305562973022f);
  EXPECT_EQ(f.at("empty").shape, (std::vector<int64_t>{0, 4}));
  EXPECT_TRUE(f.at("empty").data.empty());
  EXPECT_TRUE(f.at("scalar").shape.empty());
  EXPECT_EQ(f.at("ключ").dtype, DType::Bool);
  EXPECT_EQ(f.find("none"), nullptr);
  EXPECT_THROW(f.at("none"), Error);
}

TEST(SafetensorsRead, PaddedAndEmptyFiles) {
  EXPECT_EQ(File::open((kData / "good/padded.safetensors").string()).at("x").data.size(), 28u);
  EXPECT_TRUE(File::open((kData / "good/none.safetensors").string()).entries().empty());
}

TEST(SafetensorsRead, FormatsWithoutADtypeAreNamed) {
  File f = File::open((kData / "good/dtypes.safetensors").string());
  int without = 0;
  for (const Entry& e : f.entries()) without += !e.dtype;
  EXPECT_GT(without, 0);
  EXPECT_GT(f.entries().size(), static_cast<size_t>(without));
  EXPECT_EQ(f.at("float8_e4m3fn").dtype, DType::Float8_e4m3fn);
  EXPECT_EQ(f.at("float8_e5m2").dtype, DType::Float8_e5m2);
  EXPECT_EQ(f.at("uint64").dtype, DType::UInt64);
}

TEST(SafetensorsRead, MetadataMayBeNull) {
  EXPECT_EQ(error_of(with_header(R"({"__metadata__":null,"x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4)),
            "");
}

TEST(SafetensorsRead, EveryPrefixIsRefused) {
  std::ifstream in(kData / "good/metadata.safetensors", std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(error_of(whole.substr(0, n)), "") << n;
  EXPECT_EQ(error_of(whole), "");
  EXPECT_NE(error_of(whole + "x"), "");
}

TEST(SafetensorsRead, MessagesSayWhatIsWrong) {
  auto one = [](const char* dtype, const char* shape, const char* offsets) {
    return std::string(R"({"x":{"dtype":")") + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  struct Case {
    std::string header;
    size_t data;
    const char* says;
  } cases[] = {
      {one("F31", "[1]", "[0,4]"), 4, "unknown dtype 'F31'"},
      {one("F32", "[-1]", "[0,4]"), 4, "non-negative"},
      {one("F32", "[1.5]", "[0,4]"), 4, "non-negative"},
      {one("F32", "[1]", "[4,0]"), 4, "do not lie"},
      {one("F32", "[4611686018427387904,4]", "[0,0]"), 0, "does not fit"},
      {one("F32", "[18446744073709551615]", "[0,4]"), 4, "too large"},
      {one("F32", "[1]", "[4,8]"), 8, "hole"},
      {one("F32", "[1]", "[0,4]"), 8, "the tensors take 4"},
      {one("F32", "[1]", "[0]"), 4, "list of two"},
      {R"({"x":{"dtype":"F32","shape":[1]}})", 4, "expected dtype, shape and data_offsets"},
      {R"({"x":3})", 0, "expected dtype"},
      {R"([1])", 0, "JSON object"},
      {R"({"__metadata__":{"a":1}})", 0, "must be a string"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
       8, "twice"},
      {std::string(100000, '['), 0, "JSON object"},
      {R"({"x":{"shape":)" + std::string(100000, '['), 0, "deeper"},
      {R"({"x":{"dtype":"F32","dtype":"F64"}})", 0, "twice"},
      {R"({"x":{"shape":{}}})", 0, "deeper"},
      {R"({"__metadata__":[]})", 0, "object of strings"},
      {"\xef\xbb\xbf{}", 0, "JSON object"},
  };
  for (const Case& c : cases) {
    std::string message = error_of(with_header(c.header, c.data));
    EXPECT_NE(message.find(c.says), std::string::npos) << c.header.substr(0, 100) << " gave: " << message;
  }
}

TEST(SafetensorsWrite, ReadsBackAndReplacesWhole) {
  Folder folder;
  std::string path = folder.file("a.safetensors");
  float f[6] = {1, 2, 3, 4, 5, 6};
  int8_t b[3] = {-1, 0, 1};
  double d = 2.5;
  uint64_t u[2] = {1, ~uint64_t{0}};
  std::vector<Entry> entries{
      {"bytes", "", DType::Int8, {3}, std::as_bytes(std::span(b))},
      {"w", "", DType::Float32, {2, 3}, std::as_bytes(std::span(f))},
      {"s", "", DType::Float64, {}, std::as_bytes(std::span(&d, 1))},
      {"none", "", DType::Float16, {0, 7}, {}},
      {"e4", "", DType::Float8_e4m3fn, {3}, std::as_bytes(std::span(b))},
      {"e5", "", DType::Float8_e5m2, {3}, std::as_bytes(std::span(b))},
      {"u", "", DType::UInt64, {2}, std::as_bytes(std::span(u))},
  };
  write(path, entries, {{"who", "test \"q\""}});
  write(path, entries, {{"who", "test \"q\""}});
  File file = File::open(path);
  EXPECT_EQ(file.metadata().at("who"), "test \"q\"");
  ASSERT_EQ(file.entries().size(), entries.size());
  for (const Entry& e : entries) {
    const Entry& r = file.at(e.name);
    EXPECT_EQ(r.dtype, e.dtype);
    EXPECT_EQ(r.shape, e.shape);
    ASSERT_EQ(r.data.size(), e.data.size());
    EXPECT_TRUE(std::equal(r.data.begin(), r.data.end(), e.data.begin()));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(r.data.data()) % static_cast<size_t>(size_of(*e.dtype)), 0u) << e.name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1)
      << "a temporary file was left";
}

TEST(SafetensorsWrite, Errors) {
  Folder folder;
  float f[2] = {};
  Entry ok{"x", "", DType::Float32, {2}, std::as_bytes(std::span(f))};
  Entry short_one = ok, complex = ok, reserved = ok, text = ok;
  short_one.shape = {3};
  complex.dtype = DType::Complex128;
  complex.shape = {0};
  complex.data = {};
  reserved.name = "__metadata__";
  text.name = "\xff";
  for (const Entry& e : {short_one, complex, reserved, text})
    EXPECT_THROW(write(folder.file("x"), std::vector{e}), Error) << e.name;
  EXPECT_THROW(write(folder.file("x"), std::vector{ok, ok}), Error);
  EXPECT_THROW(write(folder.file("no/such/folder"), std::vector{ok}), Error);
  EXPECT_TRUE(fs::is_empty(folder.path));
}

}  // namespace
}  // namespace brasa::safetensors
