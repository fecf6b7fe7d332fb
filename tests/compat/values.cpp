#include <gtest/gtest.h>
#include <torch/torch.h>

#include <sstream>
#include <string>
#include <tuple>
#include <vector>

// Values of LibTorch's kinds, their containers, and the pickles that they are read from.
namespace {

using torch::IValue;

std::string text(const IValue& v) {
  std::ostringstream out;
  out << v;
  return out.str();
}

TEST(Values, KindsAndTheirText) {
  struct Case {
    IValue value;
    const char *kind, *text;
  };
  c10::Dict<std::string, int64_t> dict;
  dict.insert("b", 2);
  dict.insert("a", 1);
  for (const Case& c : std::vector<Case>{
           {IValue(), "None", "None"},
           {3, "Int", "3"},
           {2.0, "Double", "2."},
           {0.1, "Double", "0.10000000000000001"},
           {true, "Bool", "True"},
           {"a b", "String", "a b"},
           {torch::Device("cpu"), "Device", "cpu"},
           {torch::kInt64, "Int", "4"},
           {c10::complex<double>(1, -2), "ComplexDouble", "1.-2.j"},
           {std::vector<int64_t>{1, 2}, "GenericList", "[1, 2]"},
           {std::vector<std::string>{"x"}, "GenericList", "[x]"},
           {std::make_tuple(1, 2.5), "Tuple", "(1, 2.5)"},
           {c10::ivalue::Tuple::create({1}), "Tuple", "(1,)"},
           {dict, "GenericDict", "{b: 2, a: 1}"},
           {std::optional<double>(), "None", "None"},
       }) {
    EXPECT_EQ(c.value.tagKind(), c.kind);
    EXPECT_EQ(text(c.value), c.text);
    EXPECT_EQ(c.value, IValue(c.value));
  }
  EXPECT_FALSE(IValue(1) == IValue(1.0));
}

TEST(Values, WhatAnotherKindIsAskedFor) {
  try {
    IValue(3).toTensor();
    FAIL();
  } catch (const torch::Error& e) {
    EXPECT_NE(std::string(e.what()).find("Expected Tensor but got Int"), std::string::npos) << e.what();
  }
  EXPECT_THROW(IValue(std::make_tuple(1, 2)).to<std::tuple<int64_t>>(), torch::Error);
  EXPECT_THROW(IValue().toGenericDict(), torch::Error);
}

TEST(Values, ListsAreShared) {
  c10::List<int64_t> list({1, 2});
  c10::List<int64_t> same = list, other = list.copy();
  same.push_back(3);
  same[0] = 7;
  EXPECT_EQ(list.vec(), (std::vector<int64_t>{7, 2, 3}));
  EXPECT_EQ(other.size(), 2u);
  EXPECT_TRUE(list.is(same));
  EXPECT_FALSE(list == other);
  IValue value = list;
  EXPECT_TRUE(value.isIntList());
  EXPECT_FALSE(value.isDoubleList());
  EXPECT_EQ(value.to<std::vector<int64_t>>(), list.vec());
  int64_t sum = 0;
  for (int64_t x : list) sum += x;
  EXPECT_EQ(sum, 12);
  EXPECT_THROW(list.get(3), torch::IndexError);
  // Where an operator takes a list.
  c10::List<std::optional<torch::Tensor>> places;
  places.push_back(torch::tensor({1}));
  EXPECT_EQ(torch::arange(3).index(places).item<int64_t>(), 1);
}

TEST(Values, DictionariesKeepTheirOrder) {
  c10::Dict<IValue, IValue> dict;
  EXPECT_TRUE(dict.insert("z", 1).second);
  EXPECT_TRUE(dict.insert(2, torch::ones({2})).second);
  EXPECT_FALSE(dict.insert("z", 5).second);
  EXPECT_EQ(dict.at("z").toInt(), 1);
  dict.insert_or_assign("z", 6);
  EXPECT_EQ(dict.begin()->key().toStringRef(), "z");
  EXPECT_EQ(dict.begin()->value().toInt(), 6);
  EXPECT_EQ(dict.erase(2), 1u);
  EXPECT_FALSE(dict.contains(2));
  EXPECT_THROW(dict.at(2), std::out_of_range);
  EXPECT_THROW(dict.insert(c10::List<int64_t>(), 1), torch::Error);
}

// As a program sends values to Python and back.
TEST(Pickles, ThereAndBack) {
  torch::Tensor shared = torch::arange(6).reshape({2, 3});
  c10::Dict<std::string, torch::Tensor> weights;
  weights.insert("w", shared);
  weights.insert("t", shared.t());
  IValue value = c10::ivalue::Tuple::create({IValue(weights), 3, 2.5, "x", IValue(), true, torch::Device("cpu"),
                                             std::vector<int64_t>{1, 2}, std::vector<torch::Tensor>{shared},
                                             c10::impl::GenericList()});
  std::vector<char> bytes = torch::pickle_save(value);
  IValue back = torch::pickle_load(bytes);
  const std::vector<IValue>& e = back.toTuple()->elements();
  ASSERT_EQ(e.size(), 10u);
  c10::Dict<IValue, IValue> dict = e[0].toGenericDict();
  EXPECT_EQ(dict.begin()->key().toStringRef(), "w");
  EXPECT_TRUE(dict.at("w").toTensor().equal(shared));
  EXPECT_EQ(dict.at("t").toTensor().data_ptr(), dict.at("w").toTensor().data_ptr());
  for (size_t i = 1; i < 7; ++i) EXPECT_EQ(e[i], value.toTuple()->elements()[i]) << i;
  EXPECT_TRUE(e[7].isIntList());
  EXPECT_EQ(e[7].toIntVector(), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(e[8].isTensorList());
  EXPECT_TRUE(e[9].isList());
  EXPECT_FALSE(e[9].isIntList());
}

TEST(Pickles, WhatCannotBeReadOrWritten) {
  EXPECT_THROW(torch::pickle_load({}), torch::Error);
  EXPECT_THROW(torch::pickle_load({'P', 'K', 3, 4}), torch::Error);
  c10::impl::GenericList endless;
  endless.push_back(IValue(endless));
  EXPECT_THROW(torch::pickle_save(endless), torch::Error);
  endless.clear();  // it holds itself
  EXPECT_THROW(torch::pickle_save(torch::Tensor()), torch::Error);
}

TEST(Archives, KeysAreInTheOrderOfWriting) {
  torch::serialize::OutputArchive inner, out;
  inner.write("z", torch::ones({1}));
  inner.write("a", torch::ones({1}));
  out.write("weight", torch::ones({2}));
  out.write("module", inner);
  out.write("count", IValue(3));
  out.write("bias", torch::ones({2}));
  std::stringstream file;
  out.save_to(file, brasa::serialize::Form::LibTorch);
  torch::serialize::InputArchive read;
  read.load_from(file);
  for (const auto& archive : {read, torch::serialize::InputArchive(out.contents())}) {
    EXPECT_EQ(archive.keys(), (std::vector<std::string>{"weight", "module", "count", "bias"}));
    torch::serialize::InputArchive nested;
    archive.read("module", nested);
    EXPECT_EQ(nested.keys(), (std::vector<std::string>{"z", "a"}));
  }
  // A file of safetensors has the tensors in that order, within it the wide ones first, and the texts behind.
  out.write("wide", torch::ones({2}, torch::kDouble));
  std::stringstream plain;
  out.save_to(plain);
  read.load_from(plain);
  EXPECT_EQ(read.keys(), (std::vector<std::string>{"wide", "weight", "module", "bias", "count"}));
  torch::serialize::InputArchive nested;
  read.read("module", nested);
  EXPECT_EQ(nested.keys(), (std::vector<std::string>{"z", "a"}));
}

}  // namespace
