#include <gtest/gtest.h>

#include <brasa/brasa.h>

// What a caller may get wrong, and what the message must name.
namespace brasa::test {
namespace {

struct Wrong {
  const char* name;
  std::function<void()> program;
  std::vector<std::string> says;
};

const Wrong kWrong[] = {
    {"Shapes", [] { zeros({3, 4}) + zeros({3, 5}); }, {"add", "(4)", "(5)", "dimension 1", "[3, 4]", "[3, 5]"}},
    {"InnerSizes", [] { matmul(zeros({2, 3}), zeros({4, 5})); }, {"matmul", "[2, 3]", "[4, 5]"}},
    {"Dtypes", [] { matmul(zeros({2, 2}), zeros({2, 2}, kInt64)); }, {"float", "int64"}},
    {"Index", [] { (void)zeros({3})[5]; }, {"5", "size [3]"}},
    {"IndexTensor", [] { embedding(zeros({4, 2}), tensor({1, 7})); }, {"index", "out of range"}},
    {"Dim", [] { zeros({2, 3}).sum(4); }, {"-2, 1", "4"}},
    {"View", [] { zeros({2, 3}).view({4, 2}); }, {"[4, 2]", "size 6"}},
    {"Undefined", [] { Tensor() + zeros({2}); }, {"undefined"}},
    {"Item", [] { (void)zeros({2}).item<float>(); }, {"2 elements"}},
    {"Operator", [] { call("aten::gelo", {zeros({2})}); }, {"aten::gelo"}},
    {"Keyword", [] { call("aten::gelu", {zeros({2})}, {{"aproximate", "tanh"}}); }, {"aproximate", "approximate"}},
    {"Twice", [] { call("aten::gelu", {zeros({2}), "none"}, {{"approximate", "tanh"}}); }, {"approximate", "twice"}},
    {"TooMany", [] { call("aten::relu", {zeros({2}), 1}); }, {"takes 1", "got 2"}},
    {"Missing", [] { call("aten::softmax.int", {zeros({2})}, {{"dtype", kFloat64}}); }, {"no value for 'dim'"}},
    {"Backward", [] { zeros({2}).backward(); }, {"grad"}},
    {"Strides", [] { empty_strided({2, 2}, {1}); }, {"2 sizes", "1 strides"}},
};

class BadInput : public testing::TestWithParam<Wrong> {};

TEST_P(BadInput, NamesWhatWasGivenAndExpected) {
  try {
    GetParam().program();
    synchronize(get_default_device());
    FAIL() << "accepted";
  } catch (const Error& e) {
    for (const std::string& part : GetParam().says)
      EXPECT_NE(std::string(e.what()).find(part), std::string::npos) << "'" << part << "' is not in: " << e.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Public, BadInput, testing::ValuesIn(kWrong), [](const auto& i) { return i.param.name; });

// Loops without iterations, and dimensions of size 1, look alike whether operands broadcast or not.
TEST(BadInput, OperandsThatMayNotBroadcastNeverDo) {
  auto copy = [](IntArrayRef self, IntArrayRef source) { return call("aten::copy", {zeros(self), zeros(source)})[0]; };
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(copy({3, 0}, {3, 0}).sizes(), IntArrayRef({3, 0}));
    EXPECT_EQ(copy({33, 0}, {1, 0}).sizes(), IntArrayRef({33, 0}));
    EXPECT_THROW(copy({1, 0}, {33, 0}), Error);
    EXPECT_EQ(copy({1, 5}, {5}).sizes(), IntArrayRef({1, 5}));
    EXPECT_THROW(copy({5}, {1, 5}), Error);
  }
}

}  // namespace
}  // namespace brasa::test
