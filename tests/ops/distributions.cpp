#include <tuple>

#include <brasa/brasa.h>
#include <gtest/gtest.h>

// Draws against what is known of their distributions: medians and means of 100,000 numbers lie within some four standard errors.
namespace brasa {
namespace {

constexpr int64_t kDraws = 100000;

TEST(Distributions, CauchyHasItsQuartiles) {
  manual_seed(1);
  Tensor x = std::get<0>(empty({kDraws}).cauchy_(3, 2).sort());
  EXPECT_NEAR(x[kDraws / 2].item<double>(), 3, 0.04);
  EXPECT_NEAR(x[kDraws / 4].item<double>(), 1, 0.08);
  EXPECT_NEAR(x[3 * kDraws / 4].item<double>(), 5, 0.08);
  EXPECT_THROW(x.cauchy_(0, 0), Error);
}

TEST(Distributions, LogNormalIsNormalInItsLogarithm) {
  manual_seed(2);
  Tensor x = empty({kDraws}, kFloat64).log_normal_(0.5, 0.25).log();
  EXPECT_NEAR(x.mean().item<double>(), 0.5, 0.004);
  EXPECT_NEAR(x.std().item<double>(), 0.25, 0.004);
  EXPECT_THROW(x.log_normal_(0, -1), Error);
}

TEST(Distributions, GeometricCountsTrials) {
  manual_seed(3);
  for (DType t : {kFloat32, kInt64}) {
    Tensor x = empty({kDraws}, t).geometric_(0.25);
    EXPECT_EQ(x.min().item<double>(), 1);
    EXPECT_NEAR(x.to(kFloat64).mean().item<double>(), 4, 0.05);
    EXPECT_NEAR((x == 1).to(kFloat64).mean().item<double>(), 0.25, 0.006);
  }
  EXPECT_THROW(empty({2}).geometric_(1), Error);
}

}  // namespace
}  // namespace brasa
