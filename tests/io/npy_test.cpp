#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/npy.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "error_of.h"
#include "io/zip.h"
#include "support/mapped_file.h"

namespace brasa::io {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(BRASA_TEST_DATA) / "npy";

std::string good(const std::string& name) { return (kData / "good" / name).string(); }
std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("brasa_npy_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

void expect_error(const std::string& message, const std::string& says) {
  EXPECT_NE(message.find(says), std::string::npos) << "expected '" << says << "', got '" << message << "'";
}

// A file with this header and that many zero bytes.
std::string npy(const std::string& header, size_t data, char major = 1) {
  std::string out = std::string("\x93NUMPY") + major + '\0' + static_cast<char>(header.size() & 0xff) +
                    static_cast<char>(header.size() >> 8);
  if (major > 1) out += std::string(2, '\0');
  return out + header + std::string(data, '\0');
}
std::string npz(const std::vector<std::pair<std::string, std::string>>& records) {
  std::string out;
  ZipWriter zip([&](const void* p, size_t n) { out.append(static_cast<const char*>(p), n); });
  for (const auto& [name, bytes] : records) zip.add(name, bytes);
  zip.finish();
  return out;
}

// What the files with every dtype hold: 0, 37, 74, 111, 28, 65; less of it where the dtype asks for that.
Tensor expected(DType t) {
  Tensor v = arange(6, kInt64).mul(37).remainder(120).view({2, 3}).cpu();
  if (t == kBool) return v.remainder(2).eq(1);
  if (is_complex(t)) return complex(v.to(kFloat64), v.to(kFloat64) + 1).to(t);
  return (is_floating(t) ? v.to(kFloat64) / 4 - 3 : v).to(t);
}

const DType kAll[] = {kBool,  kUInt8,   kUInt64,  kInt8,    kInt16,        kInt32,
                      kInt64, kFloat16, kFloat32, kFloat64, kComplexFloat, kComplexDouble};

TEST(Npy, EveryDTypeAndBothOrdersOfBytes) {
  for (const char* file : {"dtypes.npz", "swapped.npz"}) {
    TensorDict arrays = load_npz(good(file));
    EXPECT_EQ(arrays.size(), std::size(kAll));
    for (DType t : kAll) {
      const Tensor& got = arrays.at(std::string(name(t)));
      ASSERT_EQ(got.scalar_type(), t);
      EXPECT_TRUE(got.is_cpu());
      // uint64 has no arithmetic.
      EXPECT_TRUE(t == kUInt64 ? got.to(kInt64).equal(expected(kInt64)) : got.equal(expected(t))) << file << " " << t;
    }
  }
}

TEST(Npy, OrdersRanksAndVersions) {
  EXPECT_TRUE(load_npy(good("rows.npy")).equal(expected(kFloat32)));
  Tensor columns = load_npy(good("columns.npy"));
  EXPECT_EQ(columns.strides(), IntArrayRef({1, 2, 6}));
  EXPECT_TRUE(columns.equal(arange(24, kInt16).view({2, 3, 4}).cpu()));
  Tensor swapped = load_npy(good("swapped_columns.npy"));
  EXPECT_EQ(swapped.strides(), IntArrayRef({1, 2}));
  EXPECT_TRUE(swapped.equal(expected(kComplexFloat)));
  Tensor number = load_npy(good("number.npy"));
  EXPECT_EQ(number.dim(), 0);
  EXPECT_EQ(number.item<double>(), 2.5);
  EXPECT_EQ(load_npy(good("empty.npy")).sizes(), IntArrayRef({0, 3}));
  EXPECT_TRUE(load_npy(good("vector.npy")).equal(tensor({1, 0, 1}, kBool).cpu()));
  for (const char* file : {"version_2.npy", "version_3.npy"}) EXPECT_TRUE(load_npy(good(file)).equal(expected(kInt32)));
  EXPECT_TRUE(load_npz(good("none.npz")).empty());
}

TEST(Npy, HeadersOfOtherWriters) {
  auto sizes = [](const std::string& header, size_t data) {
    return parse_npy(bytes_of(npy(header, data))).sizes().vec();
  };
  using Shape = std::vector<int64_t>;
  EXPECT_EQ(sizes("{'shape': (2L, 3L), 'fortran_order': False, 'descr': '<f4'}", 24), Shape({2, 3}));
  EXPECT_EQ(sizes("{\"descr\":\"<u1\",\"fortran_order\":True,\"shape\":(2,)}\n", 2), Shape({2}));
  EXPECT_EQ(sizes(" {'descr': '>i1' , 'fortran_order' : False, 'shape': ( 2 , 1 , ) , } \n", 2), Shape({2, 1}));
  EXPECT_EQ(sizes("{'descr': '<f8', 'fortran_order': True, 'shape': (576460752303423488, 0)}", 0),
            Shape({int64_t{1} << 59, 0}));
}

// What numpy.save writes for the same array, byte by byte.
TEST(Npy, WritesWhatNumPyWrites) {
  Folder folder;
  std::string path = folder.file("a.npy");
  for (const char* name : {"rows.npy", "columns.npy", "number.npy", "empty.npy", "vector.npy"}) {
    save_npy(load_npy(good(name)), path);
    EXPECT_EQ(read_file(path), read_file(good(name))) << name;
  }
  MappedFile file = map_file(good("dtypes.npz"));
  ZipReader zip(file.bytes, "dtypes.npz");
  for (const auto& [name, array] : load_npz(good("dtypes.npz"))) {
    save_npy(array, path);
    EXPECT_EQ(read_file(path), zip.text(name + ".npy")) << name;
  }
}

TEST(Npy, WhatIsWrittenIsReadBack) {
  Folder folder;
  std::string path = folder.file("a.npy");
  Tensor x = arange(60, kFloat32).view({3, 4, 5});
  for (const Tensor& t : {x, x.permute({2, 1, 0}), x.permute({1, 0, 2}), x.slice(2, 1, 4), x[1], x[2][3][4],
                          x.slice(0, 3), x.select(0, 1).t(), ones({1}).expand({2, 3})}) {
    save_npy(t, path);
    Tensor got = load_npy(path);
    EXPECT_EQ(got.sizes(), t.sizes());
    EXPECT_TRUE(got.equal(t.cpu()));
  }
  save_npy(x.permute({2, 1, 0}), path);
  EXPECT_EQ(load_npy(path).strides(), IntArrayRef({1, 5, 20}));
  Tensor leaf = rand({2}).requires_grad_();
  save_npy(leaf * 2, path);
  EXPECT_FALSE(load_npy(path).requires_grad());
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1)
      << "a temporary file was left";
}

TEST(Npy, ArchivesOfSeveral) {
  Folder folder;
  std::string path = folder.file("a.npz");
  TensorDict arrays{{"w", rand({2, 3})}, {"größe/b.npy", rand({3, 2}).t()}, {"", zeros({0})}, {"n", scalar_tensor(3)}};
  save_npz(arrays, path);
  save_npz(arrays, path);
  TensorDict got = load_npz(path);
  ASSERT_EQ(got.size(), arrays.size());
  for (const auto& [name, t] : arrays) {
    EXPECT_EQ(got.at(name).sizes(), t.sizes());
    EXPECT_TRUE(got.at(name).equal(t.cpu())) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path), fs::directory_iterator()), 1);
}

TEST(Npy, DTypesThatBrasaHasNot) {
  auto error = [](const std::string& file) { return error_of([&] { load_npy((kData / "bad" / file).string()); }); };
  expect_error(error("object.npy"), "object.npy: dtype '|O' (object: pickles, which are programs and never read)");
  expect_error(error("structured.npy"), "dtype '[('x', '<f4'), ('y', '<i8', (2,))]' (structured)");
  expect_error(error("bytes.npy"), "'|S2' (bytes)");
  expect_error(error("text.npy"), "'<U2' (str)");
  expect_error(error("void.npy"), "'|V2' (void: bytes without a meaning)");
  expect_error(error("dates.npy"), "'<M8[D]' (datetime64)");
  expect_error(error("spans.npy"), "'<m8[s]' (timedelta64)");
  expect_error(error("uint16.npy"),
               "'<u2' (uint16) cannot be read; expected bool, int8 to int64, uint8, uint64, float16");
  expect_error(error("uint32.npy"), "'>u4' (uint32)");
  expect_error(error("longdouble.npy"), "'<f16' (float128)");
  expect_error(error("two_arrays.npy"), "int8[2, 3] takes 6 bytes, 140 follow the header");
}

TEST(Npy, HeadersThatBreakTheFormat) {
  struct Case {
    std::string file;
    const char* says;
  };
  auto with = [](const std::string& format, const std::string& order, const std::string& shape, size_t data = 4) {
    return npy("{'descr': " + format + ", 'fortran_order': " + order + ", 'shape': " + shape + ", }", data);
  };
  const std::string good_header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  std::string future = npy(good_header, 4, 4), minor = npy(good_header, 4);
  minor[7] = 1;
  Case cases[] = {
      {"", "0 bytes"},
      {"\x93NUMPX\1\0{}", "does not begin with NumPy's mark"},
      {future, "version 4.0 of the npy format"},
      {minor, "version 1.1 of the npy format"},
      {std::string("\x93NUMPY\1\0\4", 9), "ends in its header"},
      {npy(good_header, 4).substr(0, 40), "header's length 57 does not fit"},
      {std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), "header's length 4294967295 does not fit"},
      {npy("", 0), "the header has its end where '{' is expected"},
      {npy("[]", 0), "has '[]' where '{' is expected"},
      {npy("{'descr': '<f4'}", 4), "lacks one of descr, fortran_order and shape"},
      {npy("{'descr': '<f4', 'descr': '<f4'}", 4), "has the key 'descr' twice"},
      {npy("{'__class__': 1}", 4), "has the key '__class__', expected descr"},
      {npy("{descr: '<f4'}", 4), "where a string is expected"},
      {npy("{'descr' '<f4'}", 4), "where ':' is expected"},
      {npy("{'descr': '<f4' 'shape': ()}", 4), "where '}' is expected"},
      {npy("{'descr': '<f4", 4), "where a string is expected"},
      {npy(good_header + "; import os", 4), "goes on behind its dictionary: ; import os"},
      {with("__import__('os').system('true')", "False", "(1,)"),
       "has '__import__('os').sys' where a dtype is expected"},
      {with("'<f4'.upper()", "False", "(1,)"), "where '}' is expected"},
      {with("[('x', '<f4'", "False", "(1,)"), "where a dtype is expected"},
      {with("'f4'", "False", "(1,)"), "dtype 'f4' (float32)"},
      {with("'=f4'", "False", "(1,)"), "dtype '=f4' (float32)"},
      {with("'|f4'", "False", "(1,)"), "dtype '|f4' (float32)"},
      {with("'<f3'", "False", "(1,)"), "dtype '<f3' (float24)"},
      {with("'<x4'", "False", "(1,)"), "dtype '<x4' (unknown)"},
      {with("''", "False", "(1,)"), "dtype '' (unknown)"},
      {with("'<f4'", "false", "(1,)"), "where True or False is expected"},
      {with("'<f4'", "1", "(1,)"), "where True or False is expected"},
      {with("'<f4'", "False", "1"), "where '(' is expected"},
      {with("'<f4'", "False", "(1)"), "is the number 1, not a tuple"},
      {with("'<f4'", "False", "(-1,)"), "where a size from 0 to 2^63 - 1 is expected"},
      {with("'<f4'", "False", "(+1,)"), "where a size"},
      {with("'<f4'", "False", "(01,)"), "where a size"},
      {with("'<f4'", "False", "(1 1)"), "where ',' or ')' is expected"},
      {with("'<f4'", "False", "(,)"), "where a size"},
      {with("'<f4'", "False", "(1.0,)"), "where ',' or ')' is expected"},
      {with("'<f4'", "False", "(9223372036854775808,)"), "where a size"},
      {with("'<f4'", "False", "(4611686018427387904, 4)"), "does not fit into memory"},
      {with("'<f4'", "False", "(4611686018427387904, 0, 4)"), "does not fit into memory"},
      {with("'<f4'", "False", "(2,)"), "float32[2] takes 8 bytes, 4 follow the header"},
      {with("'<f4'", "False", "(0,)"), "float32[0] takes 0 bytes, 4 follow the header"},
      {npy(
           "{'descr': '<f4', 'shape': (" +
               [] {
                 std::string ones;
                 for (int i = 0; i < 65; ++i) ones += "1, ";
                 return ones;
               }() +
               ")}",
           4),
       "more than 64 dimensions"},
      {npz({}), "does not begin with NumPy's mark"},
      {npz({{"a.npy", npy(good_header, 4)}}), "begins as a zip archive, which load_npz reads"},
  };
  for (const Case& c : cases) expect_error(error_of([&] { parse_npy(bytes_of(c.file), "f"); }), c.says);
}

TEST(Npy, EachPrefixIsRefused) {
  for (const char* name : {"columns.npy", "version_3.npy"}) {
    std::string whole = read_file(good(name));
    for (size_t n = 0; n < whole.size(); ++n)
      EXPECT_NE(error_of([&] { parse_npy(bytes_of(whole).first(n)); }), "") << name << " " << n;
  }
  std::string whole = read_file(good("swapped.npz"));
  for (size_t n = 0; n < whole.size(); n += 7)
    EXPECT_NE(error_of([&] { parse_npz(bytes_of(whole).first(n)); }), "") << n;
}

TEST(Npy, DamagedArchivesAreErrors) {
  std::string whole = read_file(good("dtypes.npz"));
  std::string damaged = whole;
  size_t begin = whole.find("\x93NUMPY");
  damaged[begin + 130] = static_cast<char>(damaged[begin + 130] ^ 4);
  expect_error(error_of([&] { parse_npz(bytes_of(damaged), "f"); }), "f: record 'bool.npy' is damaged");
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    damaged = whole;
    for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    error_of([&] { parse_npz(bytes_of(damaged)); });  // Any other exception fails the test.
  }
  auto error = [](const std::string& file) { return error_of([&] { parse_npz(bytes_of(file), "f"); }); };
  expect_error(error(npz({{"readme.txt", "hello"}})), "record 'readme.txt' is no array: its name does not end in .npy");
  expect_error(error(npz({{"w.npy", "hello"}})), "f: 'w': no npy file");
  expect_error(error(read_file(kData / "bad/object.npy")), "it is a single array, which load_npy reads");
  expect_error(error(npz({{"w.npy", read_file(kData / "bad/object.npy")}})), "f: 'w': dtype '|O' (object");
  expect_error(error(""), "no zip archive: 0 bytes");
}

TEST(Npy, WhatCannotBeWritten) {
  Folder folder;
  std::string one = folder.file("a.npy"), several = folder.file("a.npz");
  auto error = [&](const Tensor& t) { return error_of([&] { save_npy(t, one); }); };
  expect_error(error(zeros({2}, kBFloat16)), "a.npy: NumPy has no dtype bfloat16; convert the tensor first");
  expect_error(error(zeros({2}, kFloat8_e5m2)), "NumPy has no dtype float8_e5m2");
  expect_error(error(zeros({2}, kComplexHalf)), "NumPy has no dtype complex32");
  expect_error(error(Tensor()), "the tensor is undefined");
  expect_error(error(eye(2).cpu().to_sparse()), "a sparse tensor");
  expect_error(error(ones(std::vector<int64_t>(65, 1))), "65 dimensions, NumPy's arrays 64 at most");
  expect_error(error_of([&] { save_npy(ones({1}), folder.file("no/such/folder.npy")); }), "cannot write");
  auto error_in = [&](const TensorDict& arrays) { return error_of([&] { save_npz(arrays, several); }); };
  expect_error(error_in({{"a", ones({1})}, {"b", zeros({2}, kBFloat16)}}), "a.npz: 'b': NumPy has no dtype bfloat16");
  expect_error(error_in({{std::string("a\0b", 3), ones({1})}}), "the name 'a' goes on behind a NUL");
  expect_error(error_in({{"\xff", ones({1})}}), "a name is not UTF-8");
  expect_error(error_in({{std::string(70000, 'a'), ones({1})}}), "65535 at most");
  EXPECT_TRUE(fs::is_empty(folder.path));
}

TEST(Npy, IsDescribed) {
  EXPECT_EQ(describe_npy(good("columns.npy")), "int16[2, 3, 4], in Fortran's order\n");
  EXPECT_EQ(describe_npy((kData / "bad/uint32.npy").string()), "'>u4'[2] (uint32), which cannot be read\n");
  std::string archive = describe_npy(good("swapped.npz"));
  EXPECT_TRUE(archive.starts_with("npz, 12 arrays\n")) << archive;
  expect_error(archive, "float16  float16[2, 3], most significant bytes first\n");
  expect_error(error_of([] { describe_npy(BRASA_TEST_DATA "/safetensors/good/none.safetensors"); }), "no zip archive");
}

}  // namespace
}  // namespace brasa::io
