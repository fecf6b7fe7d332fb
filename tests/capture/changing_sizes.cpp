// Functions whose sizes change in every call: what a first few graphs know is what the program says, and not what sizes had by chance, so that
// no later call compiles.
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <brasa/stats.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <random>

namespace brasa {
namespace {

namespace F = nn::functional;
using Images = std::function<Tensor(const Tensor&)>;

struct Program {
  const char* name;
  Images (*make)();
  int most;  // graphs
};
void PrintTo(const Program& p, std::ostream* out) { *out << p.name; }

Tensor weight(IntArrayRef sizes) { return (randn(sizes) * 0.2).requires_grad_(); }

Images pooled_and_joined(const std::function<Tensor(const Tensor& up, const Tensor& skip)>& join) {
  Tensor w = weight({6, 3, 3, 3}), up = weight({6, 6, 2, 2}), last = weight({2, 12, 1, 1});
  return [=](const Tensor& x) {
    Tensor skip = conv2d(x, w, {}, 1, 1), small = max_pool2d(skip, 2);
    return conv2d(join(conv_transpose2d(small, up, {}, 2), skip), last).square().mean({1, 2, 3});
  };
}

const Program kPrograms[] = {
    // What is cut to the smaller one of two images is one of them as a whole.
    {"CutToTheSmaller",
     [] {
       return pooled_and_joined([](const Tensor& up, const Tensor& skip) {
         int64_t h = std::min(up.size(2), skip.size(2)), w = std::min(up.size(3), skip.size(3));
         return cat({up.narrow(2, 0, h).narrow(3, 0, w), skip.narrow(2, 0, h).narrow(3, 0, w)}, 1);
       });
     },
     5},
    {"PaddedToTheLarger",
     [] {
       return pooled_and_joined([](const Tensor& up, const Tensor& skip) {
         return cat({constant_pad_nd(up, {0, skip.size(3) - up.size(3), 0, skip.size(2) - up.size(2)}, 0), skip}, 1);
       });
     },
     5},
    {"Interpolated",
     [] {
       return pooled_and_joined([](const Tensor& up, const Tensor& skip) {
         Tensor small = max_pool2d(max_pool2d(up, 3, 2, 1), 2, 2, 0, 1, true);
         return cat({F::interpolate(small, F::InterpolateFuncOptions()
                                               .size(std::vector<int64_t>{skip.size(2), skip.size(3)})
                                               .mode(kBilinear)
                                               .align_corners(false)),
                     skip},
                    1);
       });
     },
     4},
    // Images become smaller than kernels, and are even or not.
    {"StridedAndSmall",
     [] {
       Tensor first = weight({8, 3, 3, 3}), second = weight({8, 8, 3, 3}), third = weight({8, 1, 5, 5}),
              head = weight({3, 32});
       return Images([=](const Tensor& x) {
         Tensor y = conv2d(x, first, {}, 2, 1).relu();
         y = conv2d(conv2d(y, second, {}, 2, 1).relu(), third, {}, 2, 2, 1, 8).relu();
         return linear(adaptive_avg_pool2d(y, 2).flatten(1), head).square().mean(1);
       });
     },
     4},
};

class ChangingImages : public testing::TestWithParam<std::tuple<Program, bool>> {};

TEST_P(ChangingImages, CompileNothingAfterAFew) {
  const Program program = std::get<0>(GetParam());
  const bool inside = std::get<1>(GetParam());
  manual_seed(5);
  Images f = program.make();
  Images step = [&](const Tensor& x) {
    if (!inside) return f(x);
    Tensor in = x.detach().requires_grad_(), loss = f(in).sum();
    return autograd::grad({loss}, {in})[0].square().sum({1, 2, 3});
  };
  auto compiled = compile(step);
  std::mt19937 random(11);
  auto size = [&] { return static_cast<int64_t>(random() % 40) + 17; };
  for (int i = 0; i < 24; ++i) {
    Tensor x = randn({2, 3, size(), size()});
    Stats before = stats();
    Tensor got = compiled(x);
    int64_t made = stats().compilations - before.compilations;
    EXPECT_TRUE(i < 10 || made == 0) << i << " " << x.sizes() << " compiled " << made;
    EXPECT_TRUE(allclose(got, step(x), 1e-3, 1e-5)) << x.sizes();
  }
  EXPECT_LE(compiled.explain().graphs.size(), static_cast<size_t>(program.most)) << compiled.explain().str();
}

INSTANTIATE_TEST_SUITE_P(Programs, ChangingImages, testing::Combine(testing::ValuesIn(kPrograms), testing::Bool()),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) ? "WithGradients" : "");
                         });

// Layers of convolutions that are drawn, eagerly and compiled, against the interpreter, which gets a graph for each size.
// BRASA_FUZZ_SEED and BRASA_FUZZ_COUNT give other ones.
uint32_t given(const char* variable, uint32_t otherwise) {
  const char* text = std::getenv(variable);
  return text ? static_cast<uint32_t>(std::atoi(text)) : otherwise;
}

class DrawnConvolutions : public testing::TestWithParam<uint32_t> {};

TEST_P(DrawnConvolutions, AtAllSizes) {
  std::mt19937 random(GetParam());
  auto in = [&](int64_t low, int64_t high) { return low + static_cast<int64_t>(random() % (high - low + 1)); };
  const bool transposed = in(1, 4) == 1;
  const int64_t groups = in(1, 3) == 1 ? 4 : 1, deep = groups * (in(1, 2) == 1 ? 1 : in(1, 5)),
                wide = groups * in(1, 6), kernel = in(1, 6), stride = in(1, 3), dilation = in(1, 3) == 1 ? 2 : 1,
                padding = in(0, kernel / 2);
  SCOPED_TRACE("seed " + std::to_string(GetParam()) + (transposed ? " transposed " : " ") + std::to_string(deep) +
               " to " + std::to_string(wide) + " groups " + std::to_string(groups) + " kernel " +
               std::to_string(kernel) + " stride " + std::to_string(stride) + " dilation " + std::to_string(dilation) +
               " padding " + std::to_string(padding));
  manual_seed(GetParam());
  Tensor w = transposed ? randn({deep, wide / groups, kernel, kernel}) : randn({wide, deep / groups, kernel, kernel});
  w = (w * 0.3).requires_grad_();
  auto f = [&](const Tensor& x) {
    Tensor y = transposed ? conv_transpose2d(x, w, {}, stride, padding, 0, groups, dilation)
                          : conv2d(x, w, {}, stride, padding, dilation, groups);
    std::vector<Tensor> g = autograd::grad({y.square().sum()}, {x, w});
    return std::vector{y.detach(), g[0], g[1]};
  };
  auto reference = compile(f, {.backend = "interpreter", .dynamic = false, .recompile_limit = 1000});
  auto compiled = compile(f), symbolic = compile(f, {.dynamic = true});
  const int64_t least = std::max<int64_t>(1, (kernel - 1) * dilation + 1 - 2 * padding);
  for (int i = 0; i < 14; ++i) {
    auto size = [&] { return transposed ? in(2, 9) : least + in(0, 12); };
    Tensor x = randn({in(1, 5), deep, size(), size()}).requires_grad_();
    std::vector<Tensor> expected = reference(x), now = f(x), later = compiled(x), at_once = symbolic(x);
    for (size_t k = 0; k < 3; ++k) {
      EXPECT_TRUE(allclose(now[k], expected[k], 1e-3, 1e-3)) << "eager " << k << " of " << x.sizes();
      EXPECT_TRUE(allclose(later[k], expected[k], 1e-3, 1e-3)) << "compiled " << k << " of " << x.sizes();
      EXPECT_TRUE(allclose(at_once[k], expected[k], 1e-3, 1e-3)) << "symbolic " << k << " of " << x.sizes();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, DrawnConvolutions,
                         testing::Range(given("BRASA_FUZZ_SEED", 1),
                                        given("BRASA_FUZZ_SEED", 1) + given("BRASA_FUZZ_COUNT", 4)));

}  // namespace
}  // namespace brasa
