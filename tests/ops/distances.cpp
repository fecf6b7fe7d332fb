#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <limits>

namespace brasa::test {
namespace {

// The distances between all rows, of which each pair is taken once: they know nothing of how pairs are numbered.
Tensor of_pairs(const Tensor& x, double p) {
  constexpr int64_t kByDifferences = 2;
  return cdist(x, x, p, kByDifferences).masked_select(ones({x.size(0), x.size(0)}, kBool).triu(1));
}

TEST(Pdist, AgreesWithAllDistances) {
  for (double p : {0.0, 1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()})
    for (int64_t rows : {0, 1, 2, 3, 70})
      for (int64_t columns : {1, 5, 40}) {
        Tensor x = randn({rows, columns}, kDouble);
        if (rows > 2) x[1].copy_(x[0]);  // at no distance
        Tensor a = x.clone().requires_grad_(), b = x.clone().requires_grad_();
        Tensor got = pdist(a, p), expected = of_pairs(b, p);
        EXPECT_TRUE(allclose(got, expected, 1e-12, 1e-14)) << p << ' ' << rows << ' ' << columns;
        if (rows < 2) continue;
        Tensor weights = rand({got.size(0)}, kDouble);
        (got * weights).sum().backward();
        (expected * weights).sum().backward();
        EXPECT_TRUE(allclose(a.grad(), b.grad(), 1e-12, 1e-12)) << p << ' ' << rows << ' ' << columns;
      }
}

// A NaN makes the distances of its row NaN, and no others.
TEST(Pdist, NaNGoesWhereItsPairsGo) {
  Tensor x = tensor({0.0, 1.0, 3.0, 7.0}, kDouble).reshape({4, 1});
  x[2].fill_(NAN);
  Tensor has_nan = pdist(x, 2).isnan();
  EXPECT_TRUE(equal(has_nan, tensor({0, 1, 0, 1, 0, 1}).to(kBool)));
}

// The batch of rows with fewer dimensions is broadcast, whichever operand has them.
TEST(Cdist, RowsOfOtherRanks) {
  for (double p : {0.0, 1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()})
    for (int64_t rows : {2, 30}) {
      Tensor few = randn({rows, 5}, kDouble), many = randn({2, 3, 4, 5}, kDouble);
      for (bool first : {true, false}) {
        auto distances = [&](const Tensor& x, const Tensor& y) { return first ? cdist(x, y, p) : cdist(y, x, p); };
        Tensor a = few.clone().requires_grad_(), b = few.clone().requires_grad_();
        Tensor got = distances(a, many), expected = distances(b.expand({2, 3, rows, 5}), many);
        ASSERT_EQ(got.sizes(), expected.sizes()) << p << ' ' << rows;
        EXPECT_TRUE(allclose(got, expected, 1e-9, 1e-9)) << p << ' ' << rows;
        got.square().sum().backward();
        expected.square().sum().backward();
        EXPECT_TRUE(allclose(a.grad(), b.grad(), 1e-8, 1e-8)) << p << ' ' << rows;
      }
    }
}

}  // namespace
}  // namespace brasa::test
