#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

namespace brasa::nn {
namespace {

TEST(Options, AChoiceIsOneOfItsWords) {
  Reduction reduction = kSum;
  EXPECT_TRUE(holds_alternative<enumtype::kSum>(reduction));
  EXPECT_FALSE(reduction.is<enumtype::kMean>());
  EXPECT_EQ(enumtype::get_enum_name(reduction), "kSum");
  EXPECT_EQ(enumtype::reduction_get_enum(reduction), 2);
  reduction = kNone;
  EXPECT_EQ(enumtype::reduction_get_enum(reduction), 0);
  static_assert(!std::is_constructible_v<Reduction, enumtype::kReLU>);
}

TEST(Options, AChoiceConvertsToOneAmongMoreWords) {
  UpsampleOptions::mode_t few = kTrilinear;
  functional::InterpolateFuncOptions::mode_t more = few;
  EXPECT_EQ(enumtype::get_enum_name(more), "kTrilinear");
}

TEST(Options, PaddingIsNumbersOrAWord) {
  auto options = Conv2dOptions(1, 1, 3).padding({1, 2});
  EXPECT_EQ((**options.padding().sizes())[1], 2);
  EXPECT_EQ((**options.padding(4).padding().sizes())[1], 4);
  EXPECT_EQ((**options.padding(std::vector<int64_t>{5, 6}).padding().sizes())[0], 5);
  options.padding(kSame);
  EXPECT_EQ(options.padding().sizes(), nullptr);
  Tensor x = ones({1, 1, 5, 5});
  EXPECT_EQ(Conv2d(options)(x).sizes(), x.sizes());
  EXPECT_EQ(Conv2d(options.padding(kValid))(x).sizes(), IntArrayRef({1, 1, 3, 3}));
  EXPECT_THROW(options.padding({1, 2, 3}), Error);
}

TEST(Options, ActivationIsAWordOrAFunction) {
  manual_seed(0);
  auto options = TransformerEncoderLayerOptions(4, 2).dropout(0);
  TransformerEncoderLayer layer(options);
  Tensor x = randn({3, 1, 4});
  Tensor with_relu = layer(x);
  layer->options.activation([](const Tensor& t) { return t.clamp_min(0); });
  EXPECT_TRUE(layer(x).equal(with_relu));
  layer->options.activation(kGELU);
  EXPECT_FALSE(layer(x).equal(with_relu));
}

}  // namespace
}  // namespace brasa::nn
