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

}  // namespace
}  // namespace brasa
