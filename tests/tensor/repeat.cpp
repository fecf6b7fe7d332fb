#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/stats.h>

// A call like an earlier one takes that one's variant without looking at more than dtypes and shapes.
namespace brasa {
namespace {

TEST(Repeat, CallsThatLookAlikeAreToldApart) {
  NoGradGuard no_grad;
  Tensor f = arange(6).to(kFloat32).reshape({2, 3}), d = f.to(kFloat64), i = arange(6).reshape({2, 3}),
         n = ones({}) * 3;
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(equal(f + f, f * 2));
    EXPECT_EQ((f + d).scalar_type(), kFloat64);
    EXPECT_EQ((f + i).scalar_type(), kFloat32);
    EXPECT_EQ((i + i).scalar_type(), kInt64);
    EXPECT_EQ((i * 2).scalar_type(), kInt64);
    EXPECT_EQ((i * 2.5).scalar_type(), kFloat32);
    EXPECT_EQ((i + n).scalar_type(), kFloat32);
    EXPECT_EQ((f + f.t().contiguous().reshape({2, 3})).sizes(), f.sizes());
    EXPECT_EQ((f + f[0]).sizes(), f.sizes());
    EXPECT_THROW((void)(f + f.t()), Error);
    EXPECT_TRUE(equal(f.t() + f.t(), (f + f).t()));
    EXPECT_EQ(f.add(f, 2).sum().item<float>(), 45);
    EXPECT_EQ(f.add(f).sum().item<float>(), 30);
    EXPECT_TRUE(equal(f.tril(), f * tensor({1.f, 0.f, 0.f, 1.f, 1.f, 0.f}).reshape({2, 3})));
    EXPECT_EQ((f * round).sum().item<float>(), 15.f * static_cast<float>(round));
    EXPECT_EQ((f.reshape({6}) + f.reshape({6})).dim(), 1);
    Tensor empty = zeros({0, 3});
    EXPECT_EQ((empty + empty).sizes(), empty.sizes());
  }
}

// A number in one place, the default in the other: the variant has one input for either.
TEST(Repeat, WhichNumberWasLeftOutMatters) {
  Tensor x = tensor({-3.f, -0.5f, 0.25f, 2.f});
  for (int round = 0; round < 3; ++round) {
    EXPECT_TRUE(equal(hardtanh(x, -2, 1), x.clamp(-2, 1)));
    EXPECT_TRUE(equal(hardtanh(x, -1, 2), x.clamp(-1, 2)));
    EXPECT_TRUE(softplus(x, 2, 20).allclose((x * 2).exp().log1p() / 2));
    EXPECT_TRUE(softplus(x, 1, 1).allclose(where(x > 1, x, x.exp().log1p())));
    EXPECT_TRUE(elu(x, 3, 1).allclose(where(x > 0, x, 3 * x.expm1())));
    EXPECT_TRUE(elu(x, 1, 3).allclose(where(x > 0, 3 * x, 3 * x.expm1())));
  }
}

TEST(Repeat, AGradientThatIsAskedForIsRecorded) {
  Tensor x = ones({4});
  for (int round = 0; round < 3; ++round) {
    EXPECT_FALSE((x * x).requires_grad());
    Tensor leaf = ones({4}).set_requires_grad(true);
    Tensor y = leaf * leaf;
    ASSERT_TRUE(y.requires_grad());
    y.sum().backward();
    EXPECT_EQ(leaf.grad().sum().item<float>(), 8);
    EXPECT_TRUE((leaf.view({2, 2}) * ones({2, 2})).requires_grad());
    NoGradGuard no_grad;
    EXPECT_FALSE((leaf * leaf).requires_grad());
  }
}

TEST(Repeat, VariantsThatGoAreNotUsedAgain) {
  set_variant_limit(16);
  auto work = [](int64_t rank) {
    NoGradGuard no_grad;
    std::vector<int64_t> sizes(static_cast<size_t>(rank), 2);
    for (int round = 0; round < 20; ++round) {
      for (DType t : {kFloat32, kFloat64, kInt64, kInt32}) {
        Tensor x = full(sizes, 3, t);
        EXPECT_EQ((x + x).sum().item<double>(), 6. * static_cast<double>(x.numel()));
        EXPECT_EQ((x * x).sum().item<double>(), 9. * static_cast<double>(x.numel()));
        EXPECT_EQ((x - x).sum().item<double>(), 0);
        EXPECT_EQ(maximum(x, x).sum().item<double>(), 3. * static_cast<double>(x.numel()));
        EXPECT_EQ((x * 2).sum().item<double>(), 6. * static_cast<double>(x.numel()));
      }
    }
  };
  std::vector<std::thread> threads;
  for (int64_t rank = 1; rank <= 4; ++rank) threads.emplace_back(work, rank);
  for (std::thread& t : threads) t.join();
  EXPECT_GT(stats().evicted, 0);
  set_variant_limit(8192);
}

}  // namespace
}  // namespace brasa
