#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/error.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "io/zip.h"
#include "small_stack.h"

namespace brasa::pickle {
namespace {

namespace fs = std::filesystem;
using Kind = Value::Kind;

const fs::path kData = fs::path(BRASA_TEST_DATA) / "checkpoints";

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
std::span<const std::byte> bytes_of(std::string_view s) { return std::as_bytes(std::span(s.data(), s.size())); }

// A checkpoint with this pickle and no storages.
std::string with_pickle(const std::string& pickle, const std::string& version = "3\n") {
  std::string out;
  io::ZipWriter zip([&](const void* p, size_t n) { out.append(static_cast<const char*>(p), n); });
  zip.add("a/data.pkl", pickle);
  zip.add("a/version", version);
  zip.finish();
  return out;
}
std::string error_of(const std::string& file) {
  try {
    parse(bytes_of(file), "f");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// Whether two values are the same, with the same sharing of memory, which `memory` collects.
bool same(const Value& a, const Value& b, std::map<void*, void*>& memory) {
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::None: return true;
    case Kind::Bool: return a.to_bool() == b.to_bool();
    case Kind::Int: return a.to_int() == b.to_int();
    case Kind::Float: return a.to_double() == b.to_double() || (std::isnan(a.to_double()) && std::isnan(b.to_double()));
    case Kind::Complex: return a.to_complex() == b.to_complex();
    case Kind::Tensor:
    case Kind::Storage: {
      const auto &s = a.stored(), &t = b.stored();
      if (!s.tensor.has_storage()) {
        bool coordinates = s.tensor.is_sparse();
        return s.tensor.sizes() == t.tensor.sizes() && s.tensor.layout() == t.tensor.layout() &&
               s.tensor._nnz() == t.tensor._nnz() &&
               (!coordinates || s.tensor.is_coalesced() == t.tensor.is_coalesced()) &&
               s.tensor.to_dense().equal(t.tensor.to_dense());
      }
      if (s.quantizer && !(t.quantizer && s.dequantize().equal(t.dequantize()))) return false;
      void *p = s.tensor.storage().data(), *q = t.tensor.storage().data();
      size_t bytes = s.tensor.storage().nbytes();
      return s.dtype == t.dtype && s.parameter == t.parameter && s.tensor.sizes() == t.tensor.sizes() &&
             s.tensor.strides() == t.tensor.strides() && s.tensor.storage_offset() == t.tensor.storage_offset() &&
             s.tensor.requires_grad() == t.tensor.requires_grad() && bytes == t.tensor.storage().nbytes() &&
             (bytes == 0 || (memory.emplace(p, q).first->second == q && std::memcmp(p, q, bytes) == 0));
    }
    case Kind::List:
    case Kind::Tuple:
    case Kind::Set:
    case Kind::Size:
      return std::equal(a.items().begin(), a.items().end(), b.items().begin(), b.items().end(),
                        [&](const Value& x, const Value& y) { return same(x, y, memory); });
    case Kind::Dict:
    case Kind::OrderedDict:
    case Kind::Counter:
    case Kind::Object:
      return std::equal(a.pairs().begin(), a.pairs().end(), b.pairs().begin(), b.pairs().end(),
                        [&](const auto& x, const auto& y) {
                          return same(x.first, y.first, memory) && same(x.second, y.second, memory);
                        });
    default: return a.text() == b.text();
  }
}

TEST(Checkpoint, IsWrittenAsItWasRead) {
  int count = 0;
  for (const auto& item : fs::directory_iterator(kData / "good")) {
    if (item.path().extension() != ".pth") continue;
    Value value = load(item.path().string());
    std::map<void*, void*> memory;
    EXPECT_TRUE(same(value, parse(bytes_of(dump(value))), memory)) << item.path();
    ++count;
  }
  EXPECT_EQ(count, 24);
}

TEST(Checkpoint, TensorsThatAreOneStayOne) {
  Tensor t = arange(6, kCPU).view({2, 3});
  Value shared = Value(t);
  Value read = parse(bytes_of(dump(Value::list({shared, shared, Value(t.t()), Value::parameter(ones({2}))}))));
  const auto& items = read.items();
  EXPECT_EQ(items[0].identity(), items[1].identity());
  EXPECT_EQ(items[2].to_tensor().storage().data(), items[0].to_tensor().storage().data());
  EXPECT_TRUE(items[2].to_tensor().equal(t.t()));
  EXPECT_TRUE(items[3].stored().parameter);
  EXPECT_FALSE(items[3].to_tensor().requires_grad());
}

TEST(Checkpoint, EachPrefixIsRefused) {
  for (const char* name : {"good/views.pth", "good/legacy_state_dict.pth"}) {
    std::string whole = read_file(kData / name);
    for (size_t n = 0; n < whole.size(); n += n < 300 ? 1 : 7)
      EXPECT_NE(error_of(whole.substr(0, n)), "") << name << " " << n;
  }
}

TEST(Checkpoint, DamagedFilesAreErrorsOrValues) {
  std::mt19937 random(1);
  for (const char* name : {"good/nested.pth", "good/views.pth", "good/pickle_protocol.pth", "good/legacy_views.pth"}) {
    std::string whole = read_file(kData / name);
    for (int i = 0; i < 300; ++i) {
      std::string damaged = whole;
      for (int k = 0; k < 4; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
      error_of(damaged);  // Any other exception fails the test.
    }
  }
}

TEST(Checkpoint, HostilePicklesAreRefusedInLittleTimeAndSpace) {
  std::string doubled = "\x80\x02]q";
  doubled += '\0';
  // Lists of the list before, twice: 2^60 items, were they counted.
  for (char i = 1; i < 60; ++i)
    (doubled += "](h") +=
        std::string(1, static_cast<char>(i - 1)) + "h" + std::string(1, static_cast<char>(i - 1)) + "eq" + i;
  EXPECT_EQ(parse(bytes_of(with_pickle(doubled + "."))).items().size(), 2u);
  EXPECT_THROW(
      {
        serialize::InputArchive archive;
        std::string names = "\x80\x02}q";
        names += '\0';
        for (char i = 1; i < 60; ++i)
          ((names += "}(U\1ah") +=
           std::string(1, static_cast<char>(i - 1)) + "U\1bh" + std::string(1, static_cast<char>(i - 1)) + "uq") += i;
        names = with_pickle(names + ".");
        archive.load_from(names.data(), names.size());
      },
      Error);
  // Tuples of themselves as keys.
  std::string keys = "\x80\x02}(U\1aq";
  keys += '\0';
  for (char i = 1; i < 60; ++i)
    (keys +=
     "h" + std::string(1, static_cast<char>(i - 1)) + "h" + std::string(1, static_cast<char>(i - 1)) + "\x86q") += i;
  EXPECT_NE(error_of(with_pickle(keys + "Nu.")), "");
  struct Case {
    std::string pickle;
    const char* says;
  } cases[] = {
      {std::string("\x80\x02]q\0h\0a.", 9), "contains itself"},
      {"\x80\x02"
       "ctorch.nn.modules.linear\nLinear\n.",
       "'torch.nn.modules.linear.Linear'"},
      {"\x80\x02"
       "ccollections\nOrderedDict\n.",
       "is no value"},
      {"\x80\x02"
       "c__torch__\nModule\n)\x81.",
       "'__torch__.Module'"},
      {"\x80\x02"
       "]]]u.",
       "mark"},
      {"\x80\x02"
       "}]N\x73.",
       "a list as a key"},
      {"\x80\x09N.", "protocol 9"},
      {"\x80\x02\x8b\xff\xff\xff\x7f"
       "a",
       "cut off"},
      {"\x80\x02"
       "ctorch._utils\n_rebuild_tensor_v2\n)R.",
       "0 arguments"},
      {"\x80\x02"
       "ctorch.storage\nUntypedStorage\nQ.",
       "persistent id"},
  };
  for (const Case& c : cases)
    EXPECT_NE(error_of(with_pickle(c.pickle)).find(c.says), std::string::npos)
        << c.says << " in " << error_of(with_pickle(c.pickle));
}

TEST(Checkpoint, VersionsAreThoseOfPyTorch) {
  for (const char* version : {"1", "3\n", "10"}) EXPECT_EQ(error_of(with_pickle("\x80\x02N.", version)), "") << version;
  for (const char* version : {"", "0", "11", "3x", "99999999999999999999"})
    EXPECT_NE(error_of(with_pickle("\x80\x02N.", version)).find("expected a number from 1 to 10"), std::string::npos)
        << version;
}

TEST(Checkpoint, RecordsDoNotLieOnEachOther) {
  // Two entries of the directory for one record: read twice, the file would be larger in memory than it is.
  std::string file = read_file(kData / "good/views.pth");
  size_t entry = file.find("PK\1\2"), next = file.find("PK\1\2", entry + 4), end = file.find("PK\5\6");
  std::string more;
  for (int i = 0; i < 200; ++i) {
    std::string copy = file.substr(entry, next - entry);
    copy[46] = static_cast<char>('0' + i / 64);
    copy[47] = static_cast<char>('0' + i % 64);
    more += copy;
  }
  std::string tail = file.substr(end);
  auto put = [&](size_t at, uint64_t v, int bytes) {
    for (int i = 0; i < bytes; ++i) tail[at + static_cast<size_t>(i)] = static_cast<char>(v >> (8 * i));
  };
  size_t begin = file.find("PK\1\2");
  put(10, 200, 2);
  put(12, more.size(), 4);
  put(16, begin, 4);
  std::string message = error_of(file.substr(0, begin) + more + tail);
  EXPECT_NE(message.find("more than the file has"), std::string::npos) << message;
}

TEST(Checkpoint, AQuantisedTensorIsItsIntegersAndTheirScales) {
  Value::Quantizer q{tensor({0.5, 2.0}).to(kFloat64), tensor({1, -1}).to(kInt64), 1};
  Value v = Value::stored({tensor({1, 1, 3, 0}).to(kInt8).view({2, 2}), "qint8", false, q});
  EXPECT_TRUE(v.stored().dequantize().equal(tensor({0.0f, 4.0f, 1.0f, 2.0f}).view({2, 2})));
  EXPECT_THROW(v.to_tensor(), Error);
  EXPECT_THROW(Value(ones({2})).stored().dequantize(), Error);
  Value read = parse(bytes_of(dump(v)));
  EXPECT_EQ(read.stored().dtype, "qint8");
  EXPECT_TRUE(read.stored().dequantize().equal(v.stored().dequantize()));
}

TEST(Checkpoint, AConjugateViewIsNoLargerThanItsFile) {
  // Sizes of 2^40 with a stride of 0: as a plain view no memory, as a conjugate one 2^43 bytes.
  auto file = [](const char* facts) {
    std::string out;
    io::ZipWriter zip([&](const void* p, size_t n) { out.append(static_cast<const char*>(p), n); });
    using namespace std::string_literals;
    zip.add("a/data.pkl",
            "\x80\x02"
            "ctorch._utils\n_rebuild_tensor_v2\n((U\7storagectorch\nComplexFloatStorage\nU\1"
            "0U\3cpuK\1tQK\0\x8a\6\0\0\0\0\0\1\x85K\0\x85\x89}"s +
                facts + "tR.");
    zip.add("a/data/0", std::string(8, '\1'));
    zip.add("a/version", "3\n");
    zip.finish();
    return out;
  };
  EXPECT_EQ(parse(bytes_of(file("}"))).to_tensor().size(0), int64_t{1} << 40);
  std::string message = error_of(file("}U\4conj\x88s"));
  EXPECT_NE(message.find("larger than its storage"), std::string::npos) << message;
  message = error_of(file("}U\4what\x88s"));
  EXPECT_NE(message.find("'what'"), std::string::npos) << message;
}

struct Folder {
  Folder() : path(fs::temp_directory_path() / ("brasa_checkpoint_" + std::to_string(::getpid()))) {
    fs::create_directories(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string file(const std::string& name) const { return (path / name).string(); }
  fs::path path;
};

TEST(Checkpoint, ADictionaryOfTensorsLoadsLikeASafetensorsFile) {
  std::string stem = (kData / "good/state_dict").string();
  TensorDict a = load_tensors(stem + ".pth"), b = load_tensors(stem + ".safetensors"),
             mapped = map_tensors(stem + ".pth"), mapped_b = map_tensors(stem + ".safetensors");
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, tensor] : a) {
    EXPECT_TRUE(tensor.equal(b.at(name))) << name;
    EXPECT_TRUE(tensor.equal(mapped.at(name))) << name;
    EXPECT_TRUE(tensor.equal(mapped_b.at(name))) << name;
  }
  // Written to, a mapped tensor changes; the file does not.
  Tensor first = mapped.begin()->second;
  first.fill_(7);
  EXPECT_EQ(first.reshape({-1})[0].item<float>(), 7);
  EXPECT_TRUE(load_tensors(stem + ".pth").at(mapped.begin()->first).equal(a.at(mapped.begin()->first)));
  EXPECT_THROW(load_tensors((kData / "good/nested.pth").string()), Error);
}

TEST(Checkpoint, SplitSafetensors) {
  Folder folder;
  save_tensors({{"a", ones({2})}, {"b", zeros({3})}}, folder.file("m-1.safetensors"));
  save_tensors({{"c", arange(4)}}, folder.file("m-2.safetensors"));
  auto index = [&](const std::string& map) {
    std::ofstream(folder.file("m.index.json")) << R"({"metadata": {}, "weight_map": )" << map << "}";
    return load_tensors(folder.file("m.index.json"));
  };
  TensorDict all = index(R"({"a": "m-1.safetensors", "b": "m-1.safetensors", "c": "m-2.safetensors"})");
  EXPECT_EQ(all.size(), 3u);
  EXPECT_TRUE(all.at("c").equal(arange(4, kCPU)));
  EXPECT_THROW(index(R"({"a": "m-2.safetensors"})"), Error);
  EXPECT_THROW(index(R"({"a": "../m-1.safetensors"})"), Error);
  EXPECT_THROW(index(R"({"a": "m.index.json"})"), Error);
  EXPECT_THROW(index(R"({"a": 3})"), Error);
  EXPECT_THROW(index("[]"), Error);
}

// Written by LibTorch's torch::save and torch::pickle_save.
TEST(LibTorchArchive, TensorsAndPlainValues) {
  Tensor t;
  brasa::load(t, (kData / "libtorch/tensor.pt").string());
  EXPECT_TRUE(t.equal(arange(6, kCPU).reshape({2, 3})));
  std::vector<Tensor> list;
  brasa::load(list, (kData / "libtorch/tensors.pt").string());
  ASSERT_EQ(list.size(), 2u);
  EXPECT_TRUE(list[1].equal(zeros({3}, TensorOptions(kInt64).device(kCPU))));

  Value dict = load((kData / "libtorch/dict.pickle").string());
  EXPECT_TRUE(dict.at("w").to_tensor().equal(ones({2, 2}, kCPU)));
  Value several = load((kData / "libtorch/list.pickle").string());
  EXPECT_EQ(several.items()[0].to_int(), 1);
  EXPECT_EQ(several.items()[1].to_double(), 2.5);
  EXPECT_EQ(several.items()[2].text(), "x");
}

// Written by Python's torch.jit.save: attributes of all kinds, and a module whose tensors are constants of its code.
TEST(LibTorchArchive, TensorsThatRequireGradientsStillDo) {
  std::vector<Tensor> list{ones({2}, requires_grad()), arange(3)}, again;
  std::stringstream file;
  brasa::save(list, file, serialize::Form::LibTorch);
  brasa::load(again, file);
  ASSERT_EQ(again.size(), 2u);
  EXPECT_TRUE(again[0].requires_grad() && again[0].is_leaf());
  EXPECT_FALSE(again[1].requires_grad());
}

TEST(LibTorchArchive, TensorsOfTorchScript) {
  std::string script = (kData / "libtorch/script.pt").string();
  for (const TensorDict& tensors : {load_tensors(script), map_tensors(script)}) {
    std::vector<std::string> names;
    for (const auto& [name, t] : tensors) names.push_back(name);
    EXPECT_EQ(names, (std::vector<std::string>{"count", "lin.bias", "lin.weight", "parts.0", "parts.1"}));
    EXPECT_TRUE(tensors.at("lin.weight").equal(arange(6, TensorOptions(kFloat32).device(kCPU)).reshape({2, 3})));
  }
  TensorDict frozen = load_tensors((kData / "libtorch/frozen.pt").string());
  EXPECT_EQ(frozen.size(), 4u);
  EXPECT_TRUE(frozen.at("CONSTANTS.c0").equal(load_tensors(script).at("lin.weight")));
  serialize::InputArchive archive, lin;
  archive.load_from(script);
  archive.read("lin", lin);
  Tensor bias;
  lin.read("bias", bias);
  EXPECT_EQ(bias[1].item<float>(), 2);
  EXPECT_EQ(load(script).at("sizes").element_kind(), Value::Kind::Int);
}

TEST(Checkpoint, ContainersOfAnyDepthOnASmallStack) {
  brasa::test::on_small_stack([] {
    Value list(1), dict(1), object(1);
    for (int i = 0; i < 100000; ++i) {
      list = i % 2 ? Value::list({list}) : Value::tuple({list});
      dict = Value::dict({{Value("a"), dict}});
      object = Value::object("C", {{Value("a"), object}});
    }
    EXPECT_THROW(dump(list), Error);
    EXPECT_THROW(dump(dict), Error);
    std::string nested = "\x80\x02" + std::string(100000, ']') + std::string(99999, 'a') + ".";
    EXPECT_THROW(parse(bytes_of(with_pickle(nested))), Error);
  });
}

}  // namespace
}  // namespace brasa::pickle

namespace brasa::io {
namespace {

TEST(Zip, The64BitFormReadsBack) {
  for (uint64_t wide_from : {uint64_t{0}, uint64_t{3}, uint64_t{0xffffffff}}) {
    std::string file;
    ZipWriter zip([&](const void* p, size_t n) { file.append(static_cast<const char*>(p), n); }, wide_from);
    zip.add("a/x", "12");
    zip.add("a/empty", "");
    zip.add("a/long", std::string(1000, 'q'));
    zip.finish();
    ZipReader reader(std::as_bytes(std::span(file.data(), file.size())), "z");
    EXPECT_EQ(reader.names(), (std::vector<std::string>{"a/x", "a/empty", "a/long"}));
    EXPECT_EQ(reader.text("a/x"), "12");
    EXPECT_EQ(reader.text("a/empty"), "");
    EXPECT_EQ(reader.text("a/long"), std::string(1000, 'q'));
    EXPECT_THROW(reader.text("a/none"), Error);
    std::vector<std::byte> inflated;
    auto* data = reinterpret_cast<const char*>(reader.read("a/long", inflated).data());
    EXPECT_EQ((data - file.data()) % 64, 0);
  }
}

}  // namespace
}  // namespace brasa::io
