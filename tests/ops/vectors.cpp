#include <gtest/gtest.h>

#include "samples.h"
#include "support/error.h"

namespace brasa::test {
namespace {

const std::string kFolder = BRASA_TEST_DATA "/ops";

const std::map<std::string, verify::Card>& cards() {
  static const auto all = verify::read_cards(kFolder);
  return all;
}

std::vector<std::string> overloads() {
  std::vector<std::string> out;
  for (auto& [name, card] : cards()) out.push_back(name);
  return out;
}

// Values and gradients of PyTorch; a compact copy, made by scripts/make_op_vectors.
class Vectors : public testing::TestWithParam<std::string> {};

TEST_P(Vectors, Interpreter) {
  const ops::Row* row = verify::row_of(GetParam());
  ASSERT_TRUE(row) << "there is no row for these vectors";
  verify::VectorFile file(kFolder + "/" + GetParam());
  for (size_t i = 0; i < file.size(); ++i)
    for (bool symbolic : {false, true}) {
      verify::Entry entry = file.entry(i, *row);
      auto wrong = verify::check(entry, verify::run_interpreter(entry.call, symbolic), cards().at(GetParam()));
      EXPECT_FALSE(wrong) << "entry " << i << (symbolic ? ", symbolic sizes: " : ": ") << wrong.value_or("");
    }
}

INSTANTIATE_TEST_SUITE_P(Reference, Vectors, testing::ValuesIn(overloads()),
                         [](const auto& i) { return test_name(i.param); });

// The comparison itself can fail.
TEST(VectorCheck, FindsWrongValues) {
  verify::VectorFile file(kFolder + "/aten.exp.default");
  verify::Entry entry = file.entry(0, ops::at("aten::exp"));
  const verify::Card& card = cards().at("aten.exp.default");
  EXPECT_FALSE(verify::check(entry, verify::run_interpreter(entry.call, false), card));
  entry.call.row = &ops::at("aten::expm1");
  EXPECT_TRUE(verify::check(entry, verify::run_interpreter(entry.call, false), card));
}

}  // namespace
}  // namespace brasa::test
