#include <gtest/gtest.h>

#include <algorithm>

#include "check.h"
#include "ops/shapes.h"

// Graphs of several convolutions, whose images keep their channels as neighbours in memory.
namespace brasa::compiler {
namespace {

namespace prim = ops::prim;
using namespace ops;  // NOLINT: the algebra on Values
using ir::Expr;
using ir::Shape;
using ir::Value;
using testing::check;
using testing::check_both;
using testing::In;
using Values = std::vector<Value>;

struct Steps {
  int64_t stride = 1, padding = 0, dilation = 1;
};

Value conv(Value x, Value w, Steps s, Expr groups = 1) {
  auto spatial = static_cast<size_t>(ops::rank_of(x)) - 2;
  auto all = [&](int64_t v) { return Shape(spatial, Expr(v)); };
  return prim::convolution(x, w, all(s.stride), all(s.padding), all(s.padding), all(1), all(s.dilation), groups);
}
Value relu(Value x) { return ops::maximum(x, ops::zeros_like(x)); }
// As batch norm does it.
Value scaled(Value x, Value scale) { return x * prim::broadcast(scale, ops::shape_of(x), {1}); }

In image(std::vector<int64_t> sizes) { return {DType::Float32, std::move(sizes), -0.5, 0.5}; }

// A block with a residual, as in a ResNet.
TEST(ChannelsLast, Residuals) {
  for (auto [s, channels] : {std::pair(Steps{1, 1, 1}, 16), std::pair(Steps{2, 1, 1}, 33),
                             std::pair(Steps{2, 2, 2}, 33), std::pair(Steps{3, 0, 1}, 16)}) {
    auto block = [s = s](const Values& v) {
      Value x = relu(scaled(conv(v[0], v[1], {2, 1, 1}), v[4]));
      Value y = relu(scaled(conv(x, v[2], s), v[5]));
      Value z = conv(y, v[3], {1, 0, 1});
      Value sum = relu(z + y) + scaled(y, v[5]);
      return Values{sum, ops::sum(y, {2, 3}), ops::sum(sum, {0, 1})};
    };
    check_both({image({1, 3, 15, 13}), image({channels, 3, 3, 3}), image({40, channels, 3, 3}), image({40, 40, 1, 1}),
                image({channels}), image({40})},
               block);
  }
}

// Zeros between elements, as in the gradient by the image of a convolution with steps: each remainder of a place has a kernel of its own.
TEST(ChannelsLast, Spread) {
  struct Zeros {
    int64_t distance, kernel, low, high;
  };
  for (const Zeros& z : {Zeros{2, 4, 2, 2}, {2, 3, 1, 2}, {2, 1, 0, 1}, {2, 5, -1, 3}, {2, 2, 0, 1}}) {
    auto spread = [z](Value x, Value w) {
      return prim::convolution(x, w, {1, 1}, {z.low, z.low}, {z.high, z.high}, {z.distance, z.distance}, {1, 1}, 1);
    };
    check_both(
        {image({2, 5, 12, 11}), image({20, 5, 3, 3}), image({33, 20, z.kernel, z.kernel}), image({16, 33, 3, 3})},
        [&](const Values& v) {
          Value x = relu(conv(v[0], v[1], {1, 1, 1}));
          return Values{conv(relu(spread(x, v[2])), v[3], {1, 1, 1})};
        });
    // Alone, the image is turned.
    check_both({image({1, 16, 17, 16}), image({20, 16, z.kernel, z.kernel})},
               [&](const Values& v) { return Values{spread(v[0], v[1])}; });
  }
  check_both({image({1, 16, 300}), image({20, 16, 7})},
             [&](const Values& v) { return Values{prim::convolution(v[0], v[1], {1}, {4}, {3}, {3}, {1}, 1)}; });
}

// Of an odd number of results later remainders have one less, and no more are computed.
TEST(ChannelsLast, SpreadOfUnevenRemainders) {
  auto spread = [](const Values& v) {
    return Values{prim::convolution(v[0], v[1], {1, 1}, {1, 1}, {1, 1}, {2, 2}, {1, 1}, 1)};
  };
  std::vector<In> in = {image({16, 20, 4, 4}), image({24, 20, 3, 3})};
  check_both(in, spread);
  auto kernels = check(in, spread).kernels;
  auto products = [&](int64_t rows) {
    return std::count_if(kernels.begin(), kernels.end(),
                         [&](const std::string& k) { return k.starts_with(str("contraction [", rows, ", 24]")); });
  };
  EXPECT_EQ(products(16 * 4 * 4), 1) << str(kernels);
  EXPECT_EQ(products(16 * 4 * 3), 2) << str(kernels);
  EXPECT_EQ(products(16 * 3 * 3), 1) << str(kernels);
}

TEST(ChannelsLast, Depthwise) {
  struct Case {
    Steps steps;
    int64_t kernel, width;
  };
  // Places of a row are computed several at a time, of wide rows several times so many for each thread.
  for (const Case& c :
       {Case{{1, 1, 1}, 5, 11}, {{2, 1, 1}, 3, 11}, {{1, 2, 2}, 3, 11}, {{1, 1, 1}, 3, 48}, {{1, 0, 1}, 3, 15}}) {
    auto block = [s = c.steps](const Values& v) {
      Value x = relu(conv(v[0], v[1], {1, 0, 1}));
      Value y = relu(scaled(conv(x, v[2], s, 37), v[4]));
      // A gate for each channel of an image.
      Value mean = ops::sum(y, {2, 3}, true) * 0.1;
      Value gate = relu(conv(mean, v[5], {}));
      return Values{conv(y * ops::broadcast_to(gate, ops::shape_of(y)), v[3], {})};
    };
    check_both({image({2, 20, 12, c.width}), image({37, 20, 1, 1}), image({37, 1, c.kernel, c.kernel}),
                image({24, 37, 1, 1}), image({37}), image({37, 37, 1, 1})},
               block);
  }
}

// Along one dimension and three, of reduced floats and doubles, with few outputs at the end, joined parts, pools.
TEST(ChannelsLast, Others) {
  auto pair = [](const Values& v) {
    Value y = relu(conv(v[0], v[1], {1, 1, 1}));
    return Values{conv(y, v[2], {2, 1, 1}), conv(y, v[2], {1, 2, 2})};
  };
  check_both({image({2, 5, 30}), image({20, 5, 3}), image({32, 20, 3})}, pair);
  check_both({image({2, 5, 7, 6, 5}), image({20, 5, 3, 3, 3}), image({32, 20, 3, 3, 3})}, pair);
  for (DType t : {DType::Float64, DType::BFloat16})
    check_both({{t, {2, 5, 9, 10}, -0.5, 0.5}, {t, {20, 5, 3, 3}, -0.5, 0.5}, {t, {32, 20, 3, 3}, -0.5, 0.5}}, pair);
  check_both({image({2, 5, 9, 10}), image({20, 5, 3, 3}), image({32, 20, 3, 3}), image({3, 52, 1, 1})},
             [](const Values& v) {
               Value x = relu(conv(v[0], v[1], {1, 1, 1})), y = relu(conv(x, v[2], {1, 1, 1}));
               Value both = prim::concat({x, y}, 1);
               Value pooled = prim::window(prim::window(both, 2, 3, 2, 1), 3, 3, 2, 1);
               return Values{conv(both, v[3], {}), prim::reduce(pooled, {4, 5}, "max")};
             });
}

// Transposed: each element makes a patch. Few outputs at the end.
TEST(ChannelsLast, Transposed) {
  auto up = [](Shape low, Shape high) {
    return [=](const Values& v) {
      Value x = relu(conv(v[0], v[1], {1, 1, 1})), y = relu(conv(x, v[2], {1, 1, 1}));
      Value wide = prim::convolution(y, v[3], {1, 1}, low, high, {2, 3}, {1, 1}, 1);
      return Values{relu(wide), conv(wide, v[4], {})};
    };
  };
  std::vector<In> in = {image({2, 5, 6, 7}), image({20, 5, 3, 3}), image({32, 20, 3, 3}), image({18, 32, 2, 3}),
                        image({3, 18, 1, 1})};
  check_both(in, up({1, 2}, {1, 2}));
  check_both(in, up({1, 2}, {2, -2}));
  check_both(in, up({0, 1}, {1, 2}));
}

// A picture of many channels by a transposed convolution: one product of all elements with all of the kernel's places, which are added up.
TEST(ChannelsLast, TransposedOfFewResults) {
  for (auto [kernel, padding] : {std::pair(4, 2), std::pair(3, 1), std::pair(5, 3)}) {
    auto up = [padding = padding](const Values& v) {
      Value x = relu(conv(v[0], v[1], {1, 1, 1}));
      Shape border{padding, padding + 1};
      return Values{prim::convolution(x, v[2], {1, 1}, border, border, {2, 2}, {1, 1}, 1)};
    };
    std::vector<In> in = {image({2, 5, 6, 7}), image({64, 5, 3, 3}), image({1, 64, kernel, kernel})};
    check_both(in, up);
    auto kernels = check(in, up).kernels;
    EXPECT_EQ(std::count_if(kernels.begin(), kernels.end(),
                            [](const std::string& k) { return k.starts_with("contraction"); }),
              2);
  }
}

// Winograd's form down the rows; an image that is smaller than the kernel's reach; none at all.
TEST(ChannelsLast, Winograd) {
  auto pair = [](const Values& v) {
    Value x = relu(conv(v[0], v[1], {1, 1, 1}));
    return Values{relu(conv(x, v[2], {1, 1, 1}) + x)};
  };
  std::vector<In> in = {image({4, 32, 11, 14}), image({33, 32, 3, 3}), image({33, 33, 3, 3})};
  check_both(in, pair);
  auto kernels = check(in, pair).kernels;
  EXPECT_EQ(std::count_if(
                kernels.begin(), kernels.end(),
                [](const std::string& k) { return k.starts_with("contraction [6,") && k.find(", 33]:") != k.npos; }),
            2);
  check_both({image({1, 32, 1, 2}), image({33, 32, 3, 3}), image({33, 33, 3, 3})}, pair);
  check_both({image({0, 32, 11, 14}), image({33, 32, 3, 3}), image({33, 33, 3, 3})}, pair);
}

// The images that are convolved with their channels last are read along their places for a gradient by weights.
TEST(ChannelsLast, GradientsByWeights) {
  auto step = [](const Values& v) {
    auto by_channels = [](Value x) { return prim::transpose(x, {1, 0, 2, 3}); };
    Value x = relu(conv(v[0], v[1], {1, 1, 1})), y = relu(conv(x, v[2], {2, 1, 1}));
    Value x_by_channels = by_channels(x), y_by_channels = by_channels(y);
    return Values{prim::convolution(x_by_channels, y_by_channels, {1, 1}, {1, 1}, {0, 0}, {1, 1}, {2, 2}, 1), y};
  };
  std::vector<In> in = {image({4, 32, 12, 14}), image({33, 32, 3, 3}), image({18, 33, 3, 3})};
  check_both(in, step);
  auto kernels = check(in, step).kernels;
  EXPECT_TRUE(std::any_of(kernels.begin(), kernels.end(),
                          [](const std::string& k) { return k.starts_with("contraction [6,"); }));
}

// A gradient by weights whose kernel is smaller than its result: what is computed from it stays in the order of the weights.
TEST(ChannelsLast, GradientsByWeightsInTheirOrder) {
  auto step = [](const Values& v) {
    auto by_channels = [](Value x) { return prim::transpose(x, {1, 0, 2, 3}); };
    Value x = relu(conv(relu(conv(relu(conv(v[0], v[1], {})), v[2], {})), v[2], {}));
    Value y = relu(conv(x, v[3], {2, 1, 1}));
    Value g = prim::convolution(by_channels(x), by_channels(y), {1, 1}, {1, 1}, {0, 0}, {1, 1}, {2, 2}, 1);
    Value mean = prim::unary("exp", by_channels(g) * 0.1) + v[4];
    return Values{mean, v[3] - mean / (mean * mean + 1), y};
  };
  std::vector<In> in = {image({16, 20, 7, 7}), image({20, 20, 1, 1}), image({20, 20, 1, 1}), image({24, 20, 4, 4}),
                        image({24, 20, 4, 4})};
  check_both(in, step);
  auto kernels = check(in, step).kernels;
  auto has = [&](std::string_view start) {
    return std::any_of(kernels.begin(), kernels.end(), [&](const std::string& k) {
      return k.starts_with(start) && k.find("mul") != k.npos && k.find("add") != k.npos;
    });
  };
  EXPECT_TRUE(has("loops [24, 20, 4, 4]")) << str(kernels);
  EXPECT_FALSE(has("loops [20, 4, 4, 24]")) << str(kernels);
}

// A convolution and its gradient by weights, both in Winograd's form, which transforms their image once.
TEST(ChannelsLast, GradientsByWeightsOfTransformedImages) {
  auto step = [](const Values& v) {
    auto by_channels = [](Value x) { return prim::transpose(x, {1, 0, 2, 3}); };
    Value x = relu(conv(v[0], v[1], {1, 1, 1})), y = conv(x, v[2], {1, 1, 1});
    Value g = prim::convolution(by_channels(x), by_channels(relu(y)), {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, 1);
    return Values{g, relu(y)};
  };
  std::vector<In> in = {image({4, 32, 12, 14}), image({33, 32, 3, 3}), image({34, 33, 3, 3})};
  check_both(in, step);
  auto kernels = check(in, step).kernels;
  auto of_images = [&](std::string_view sizes) {
    return std::count_if(kernels.begin(), kernels.end(), [&](const std::string& k) {
      return k.starts_with(str("loops ", sizes)) && k.find("xmul") != k.npos;
    });
  };
  EXPECT_EQ(of_images("[6, 4, 3, 16, 33]"), 1) << str(kernels);
  EXPECT_EQ(of_images("[6, 33, 4, 3, 16]"), 0) << str(kernels);
}

}  // namespace
}  // namespace brasa::compiler
