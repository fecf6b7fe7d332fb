// A compiled function draws the numbers that eager draws, from the generators that it names.
#include <brasa/generator.h>

#include "values.h"

namespace brasa {
namespace {

// The results of calls after a seed.
template <class F>
std::vector<Tensor> drawn(F f, int calls = 3) {
  manual_seed(11);
  std::vector<Tensor> out;
  for (int i = 0; i < calls; ++i)
    for (const Tensor& t : f()) out.push_back(t);
  out.push_back(rand({5}));  // the stream goes on where eager's does
  return out;
}

template <class F>
void expect_same_numbers(F f) {
  auto want = drawn(f);
  auto got = drawn(compile(f));
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(equal(got[i], want[i])) << i << "\n" << got[i] << "\n" << want[i];
}

TEST(CompileRandom, SeveralCallsInOneSegment) {
  expect_same_numbers([] { return std::vector<Tensor>{rand({3}), randn({2, 3}), rand({1}) + rand({1})}; });
}

TEST(CompileRandom, AGeneratorOfTheCallers) {
  expect_same_numbers([] {
    Generator mine(5);
    Tensor a = rand({3}, {}, mine), b = rand({3}), c = rand({3}, {}, mine);
    return std::vector<Tensor>{a, b, c};
  });
}

TEST(CompileRandom, ReseedingWhileRecording) {
  expect_same_numbers([] {
    manual_seed(1);
    Tensor a = rand({4});
    manual_seed(1);
    Tensor b = rand({4});
    default_generator().set_offset(default_generator().offset() + 8);
    return std::vector<Tensor>{a, b, a - b, rand({2})};
  });
}

TEST(CompileRandom, NumbersThatNobodyUsesAreTaken) {
  expect_same_numbers([] {
    rand({17});
    return std::vector<Tensor>{};
  });
}

TEST(CompileRandom, SizesMayDiffer) {
  auto f = [](int64_t n) { return dropout(ones({n, 3}), 0.5, true) + rand({n, 1}); };
  auto g = compile(f);
  std::vector<Tensor> want, got;
  manual_seed(2);
  for (int64_t n : {4, 6, 5, 9}) want.push_back(f(n));
  manual_seed(2);
  for (int64_t n : {4, 6, 5, 9}) got.push_back(g(n));
  for (size_t i = 0; i < 4; ++i) EXPECT_TRUE(equal(got[i], want[i])) << i;
  EXPECT_LE(g.explain().graphs.size(), 2u) << g.explain().str();
}

TEST(CompileRandom, BoundsMayDiffer) {
  auto f = [](int64_t n) { return randint(n, {100}) + randint(n * n, {100}); };
  auto g = compile(f);
  for (int64_t n : {3, 7, 100, 70000}) {
    manual_seed(4);
    Tensor want = f(n);
    manual_seed(4);
    EXPECT_TRUE(equal(g(n), want)) << n;
  }
  EXPECT_LE(g.explain().graphs.size(), 2u) << g.explain().str();
}

// Whole numbers are the same in each mode; others, with their derivatives, but for rounding.
TEST(CompileRandom, DistributionsThatReject) {
  auto counts = [](const Tensor& a) {
    return std::vector<Tensor>{poisson(a * 3), binomial(a.floor() * 10, (a * 0.1).clamp(0, 1))};
  };
  auto parts = [](const Tensor& a) {
    Tensor x = a.detach().clone().requires_grad_(), g = _standard_gamma(x), d = _sample_dirichlet(x);
    (g.square() + d.square()).sum().backward();
    return std::vector<Tensor>{g.detach(), d.detach(), x.grad()};
  };
  Tensor a = arange(0.05, 9, 0.11).view({2, 41});
  manual_seed(3);
  auto some = counts(a), others = parts(a);
  for (const char* backend : {"inductor", "aot_eager", "interpreter"}) {
    SCOPED_TRACE(backend);
    auto f = compile(counts, {.backend = backend});
    auto g = compile(parts, {.backend = backend});
    manual_seed(3);
    auto x = f(a), y = g(a);
    for (size_t i = 0; i < x.size(); ++i) EXPECT_TRUE(equal(x[i], some[i])) << x[i] << some[i];
    for (size_t i = 0; i < y.size(); ++i) expect_close(y[i], others[i]);
  }
}

}  // namespace
}  // namespace brasa
