// Sizes that nest as deep as a program is long: each level's size is an expression of the one before. What compiling costs for each node is
// printed, and does not grow with the depth. BRASA_NESTED_LEVELS gives another depth.
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <tuple>

#include "compile_cost.h"

namespace brasa::test {
namespace {

struct Nested {
  const char* name;
  Tensor (*level)(const Tensor&);
};

// Each level leaves the size about as it is.
const Nested kNested[] = {
    {"cat and two slices",
     [](const Tensor& x) { return cat({x, x.slice(2, 0, 3)}, 2).slice(2, 1, -1).slice(2, 0, -1); }},
    {"two poolings",
     [](const Tensor& x) { return cat({max_pool1d(x, 2, 2, 0, 1, true), max_pool1d(x, 2, 2, 1)}, 2).slice(2, 0, -1); }},
    {"growing sums",
     [](const Tensor& x) { return cat({x, x.slice(2, 1, std::nullopt, 3)}, 2).slice(2, x.size(2) / 3); }},
};

enum class Way { Dynamic, LearnsSizes, Gradients };

class NestedSizes : public testing::TestWithParam<std::tuple<Nested, Way>> {};

TEST_P(NestedSizes, AreEager) {
  const Nested nested = std::get<0>(GetParam());
  const Way way = std::get<1>(GetParam());
  const char* given = std::getenv("BRASA_NESTED_LEVELS");
  const int levels = given ? std::atoi(given) : 60;
  auto f = [level = nested.level, levels](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < levels; ++i) y = level(y);
    return y;
  };
  CompileOptions options;
  if (way != Way::LearnsSizes) options.dynamic = true;
  auto compiled = compile(f, options);
  CompileCost cost;
  for (int64_t size : {64, 71, 83}) {
    auto run = [&](const auto& function) {
      manual_seed(size);
      Tensor x = randn({1, 2, size}).set_requires_grad(way == Way::Gradients), y = function(x);
      if (way == Way::Gradients) y.sum().backward();
      return std::pair(y, x.grad());
    };
    auto [expected, gradient] = run(f);
    auto [got, got_gradient] = cost.of(str(nested.name, " at ", size), [&] { return run(compiled); });
    ASSERT_EQ(got.sizes(), expected.sizes()) << size;
    EXPECT_TRUE(equal(got, expected)) << size;
    if (way == Way::Gradients) {
      EXPECT_TRUE(allclose(got_gradient, gradient)) << size;
    }
  }
  std::cout << nested.name << ", " << levels << " levels: " << cost.text() << "\n";
}
INSTANTIATE_TEST_SUITE_P(All, NestedSizes,
                         testing::Combine(testing::ValuesIn(kNested),
                                          testing::Values(Way::Dynamic, Way::LearnsSizes, Way::Gradients)));

}  // namespace
}  // namespace brasa::test
