// Chains of operators that change sizes, with symbolic sizes from the first call: what they compute is eager's, and their expressions,
// which nest, are compiled in a time that does not explode (the suite's limit sees that; it prints what compiling cost at most).
// BRASA_FUZZ_SEED, BRASA_FUZZ_COUNT and BRASA_FUZZ_LENGTH give other seeds, how many, and how many operators a chain has.
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <iostream>
#include <random>
#include <string>

#include "compile_cost.h"

namespace brasa::test {
namespace {

using Step = std::function<Tensor(const Tensor&)>;

struct Named {
  const char* name;
  double factor;  // about what it does to the size
  Step step;
};

const std::vector<Named>& steps() {
  static const auto* all = [] {
    manual_seed(3);
    Tensor narrow = randn({2, 2, 3}) * 0.4, spread = randn({2, 2, 3}) * 0.4;
    return new std::vector<Named>{
        {"slice", 1, [](const Tensor& x) { return x.slice(2, 1, -1); }},
        {"slice by two", 0.5, [](const Tensor& x) { return x.slice(2, 1, -1, 2); }},
        {"slice from behind", 0.9, [](const Tensor& x) { return x.slice(2, -x.size(2) * 9 / 10); }},
        {"cat", 2, [](const Tensor& x) { return cat({x, x.slice(2, 0, -1)}, 2); }},
        {"pad", 1, [](const Tensor& x) { return constant_pad_nd(x, {2, 1}, 0.5); }},
        {"max_pool", 0.5, [](const Tensor& x) { return max_pool1d(x, 2, 2, 0, 1, true); }},
        {"max_pool dilated", 0.5, [](const Tensor& x) { return max_pool1d(x, 2, 2, 1, 2, false); }},
        {"avg_pool", 0.5, [](const Tensor& x) { return avg_pool1d(x, 3, 2, 1, true); }},
        {"conv", 0.5, [=](const Tensor& x) { return conv1d(x, narrow, {}, 2, 1); }},
        {"transposed conv", 2, [=](const Tensor& x) { return conv_transpose1d(x, spread, {}, 2, 1) * 0.5; }},
        {"unfold", 1, [](const Tensor& x) { return x.unfold(2, 3, 1).mean(-1); }},
        {"upsample", 1.5, [](const Tensor& x) { return upsample_nearest1d(x, {}, ArrayRef<double>({1.5})); }},
        {"halves", 0.5, [](const Tensor& x) { return x.narrow(2, x.size(2) / 2, x.size(2) / 2); }},
        {"reshape", 1, [](const Tensor& x) { return x.reshape({2, -1}).unsqueeze(0).flip({2}); }},
    };
  }();
  return *all;
}

// A chain that keeps sizes between a few and a few hundred.
std::vector<const Named*> chain(uint32_t seed, int length) {
  std::mt19937 random(seed);
  std::vector<const Named*> out;
  double size = 40;
  while (static_cast<int>(out.size()) < length) {
    const Named& n = steps()[random() % steps().size()];
    if (size * n.factor < 30 || size * n.factor > 200) continue;
    size *= n.factor;
    out.push_back(&n);
  }
  return out;
}

int given(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

class SizeFuzz : public testing::TestWithParam<uint32_t> {
 protected:
  static CompileCost& cost() {
    static auto* cost = new CompileCost;
    return *cost;
  }
  static void TearDownTestSuite() { std::cout << cost().text() << "\n"; }
};

TEST_P(SizeFuzz, IsEager) {
  std::vector<const Named*> ops = chain(GetParam(), given("BRASA_FUZZ_LENGTH", 30));
  std::string names;
  auto f = [&](const Tensor& x) {
    Tensor y = x;
    for (const Named* n : ops) y = n->step(y);
    return y;
  };
  for (const Named* n : ops) names += std::string(" ") + n->name;
  SCOPED_TRACE("seed " + std::to_string(GetParam()) + ":" + names);
  CompileOptions options;
  options.dynamic = true;
  auto compiled = compile(f, options);
  manual_seed(GetParam());
  for (int64_t size : {64, 80, 71, 67, 97}) {
    Tensor x = randn({1, 2, size}), expected = f(x);
    Tensor got = cost().of(names + " at " + std::to_string(size), [&] { return compiled(x); });
    ASSERT_EQ(got.sizes(), expected.sizes()) << size;
    EXPECT_TRUE(allclose(got, expected, 1e-4, 1e-5)) << size;
  }
}

uint32_t first_seed() { return static_cast<uint32_t>(given("BRASA_FUZZ_SEED", 1)); }
INSTANTIATE_TEST_SUITE_P(Seeds, SizeFuzz,
                         testing::Range(first_seed(),
                                        first_seed() + static_cast<uint32_t>(given("BRASA_FUZZ_COUNT", 6))));

}  // namespace
}  // namespace brasa::test
