#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <string_view>

// What the dtype of a tensor given as out= may be, and what comes into it.
namespace brasa::test {
namespace {

// What the call says about such a tensor; empty if it takes it.
std::string refusal(std::string_view name, ArrayRef<CallArg> args, const Tensor& out) {
  try {
    EXPECT_TRUE(call(name, args, {{"out", out}})[0].is_same(out)) << name;
    return "";
  } catch (const Error& e) {
    return e.what();
  }
}
std::string refusal(std::string_view name, ArrayRef<CallArg> args, DType out) {
  return refusal(name, args, empty({0}, out));
}

TEST(OutDTypes, OperatorsThatPromoteCast) {
  Tensor f = ones({2, 2}), i = ones({2, 2}, kLong);
  for (const char* name : {"aten::add.Tensor", "aten::fmod.Tensor", "aten::atan2", "aten::maximum"}) {
    EXPECT_EQ(refusal(name, {f, f}, kDouble), "");
    EXPECT_EQ(refusal(name, {f, f}, kComplexDouble), "");
    EXPECT_NE(refusal(name, {f, f}, kLong).find("can't be cast to the desired output type Long"), std::string::npos);
  }
  for (const char* name : {"aten::sin", "aten::sqrt", "aten::sigmoid", "aten::special_i0"})
    EXPECT_EQ(refusal(name, {i}, kDouble), "");
  EXPECT_EQ(refusal("aten::eq.Tensor", {f, i}, kByte), "");
  EXPECT_EQ(refusal("aten::cat", {TensorList(&f, 1), 0}, kDouble), "");
  EXPECT_EQ(refusal("aten::fft_fft", {f}, kComplexDouble), "");
  EXPECT_EQ(refusal("aten::diff", {f}, kDouble), "");
}

TEST(OutDTypes, OthersWantTheirOwn) {
  Tensor f = ones({2, 2}), first = zeros({2, 2}, kLong), mask = ones({2, 2}, kBool);
  const std::pair<const char*, std::vector<CallArg>> calls[] = {{"aten::mm", {f, f}},
                                                                {"aten::abs", {f}},
                                                                {"aten::relu", {f}},
                                                                {"aten::amax", {f}},
                                                                {"aten::gather", {f, 0, first}},
                                                                {"aten::_softmax", {f, 0, false}},
                                                                {"aten::t_copy", {f}},
                                                                {"aten::where.self", {mask, f, f}}};
  for (const auto& [name, args] : calls) {
    EXPECT_EQ(refusal(name, args, kFloat), "");
    EXPECT_NE(refusal(name, args, kDouble).find("Expected out tensor to have dtype float, but got double instead"),
              std::string::npos)
        << name;
  }
}

TEST(OutDTypes, DecideWhereACallMayNameThem) {
  Tensor x = full({4}, 1.75), whole = empty({0}, kInt), wide = empty({0}, kDouble);
  EXPECT_EQ(refusal("aten::sum.dim_IntList", {x, IntArrayRef{0}}, whole), "");
  EXPECT_EQ(whole.item<int>(), 4);
  EXPECT_EQ(refusal("aten::cumsum", {full({4}, 0.1f), 0}, wide), "");
  EXPECT_EQ(wide[3].item<double>(), 4 * static_cast<double>(0.1f));
  EXPECT_EQ(refusal("aten::linspace", {0, 3, 3}, whole), "");
  EXPECT_TRUE(equal(whole, tensor({0, 1, 3}, kInt)));
  EXPECT_EQ(refusal("aten::arange", {3}, wide), "");
  EXPECT_TRUE(equal(wide, tensor({0., 1., 2.}, kDouble)));
  EXPECT_NE(refusal("aten::full", {IntArrayRef{2}, 300}, kByte), "");
}

TEST(OutDTypes, MemoryThatElementsShareIsRefused) {
  Tensor f = ones({4}), shared = zeros({1}).expand({4});
  for (const char* name : {"aten::sin", "aten::abs"})
    EXPECT_NE(refusal(name, {f}, shared).find("more than one element of the written-to tensor"), std::string::npos);
}

}  // namespace
}  // namespace brasa::test
