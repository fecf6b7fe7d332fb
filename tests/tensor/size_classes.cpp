// Eager operators whose sizes change from call to call: few compilations serve them all.
#include "tensor/size_use.h"

#include <brasa/brasa.h>
#include <brasa/stats.h>
#include <gtest/gtest.h>

#include <random>

namespace brasa {
namespace {

// What a call compiles.
template <class F>
int64_t compiled_by(F f) {
  int64_t before = stats().compilations;
  f();
  return stats().compilations - before;
}

TEST(SizeClasses, OfALayerComeToAnEnd) {
  std::mt19937 random(7);
  auto size = [&] { return static_cast<int64_t>(random() % 14) + 2; };
  Tensor w = (randn({6, 4, 3, 3}) * 0.3).requires_grad_(), wide = w.detach().to(kFloat64).requires_grad_();
  int64_t all = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    Tensor x = randn({size(), 4, size(), size()});
    Tensor y;
    w.mutable_grad() = Tensor();
    wide.mutable_grad() = Tensor();
    int64_t compiled = compiled_by([&] {
      y = conv2d(x, w, {}, 1, 1);
      y.square().sum().backward();
    });
    all += compiled;
    if (i >= 30) last += compiled;
    Tensor expected = conv2d(x.to(kFloat64), wide, {}, 1, 1);
    expected.square().sum().backward();
    EXPECT_TRUE(allclose(y.to(kFloat64), expected, 1e-4, 1e-4)) << x.sizes();
    EXPECT_TRUE(allclose(w.grad().to(kFloat64), wide.grad(), 1e-3, 1e-3)) << x.sizes();
  }
  EXPECT_LE(all, 16);
  EXPECT_EQ(last, 0);
}

TEST(SizeClasses, OfProductsOfActivationsComeToAnEnd) {
  std::mt19937 random(8);
  int64_t all = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    int64_t batch = static_cast<int64_t>(random() % 12) + 2, length = static_cast<int64_t>(random() % 113) + 8;
    Tensor q = randn({batch, 4, length, 8}), k = randn({batch, 4, length, 8}), y;
    int64_t compiled = compiled_by([&] { y = q.matmul(k.transpose(-2, -1)).softmax(-1); });
    all += compiled;
    if (i >= 40) last += compiled;
    Tensor expected = q.to(kFloat64).matmul(k.to(kFloat64).transpose(-2, -1)).softmax(-1);
    EXPECT_TRUE(allclose(y.to(kFloat64), expected, 1e-4, 1e-5)) << length;
  }
  EXPECT_LE(all, 16);
  EXPECT_EQ(last, 0);
}

// Sizes that are met again and again are known ones, and get the code that they would have had at first.
TEST(SizeClasses, SizesThatRecurGetCodeOfTheirClass) {
  Tensor w = randn({48, 40}).requires_grad_();
  auto rows = [&](int64_t n) {
    Tensor x = randn({n, 40});
    return compiled_by([&] { EXPECT_TRUE(allclose(linear(x, w), x.matmul(w.t()), 1e-4, 1e-4)); });
  };
  rows(300);
  rows(3);  // for all that is not of the first class
  int64_t later = 0;
  for (int i = 0; i < 200; ++i) later += rows(3);
  EXPECT_EQ(later, 1);
}

using eager::SignatureUse;
using eager::SizeUse;

TEST(SizeClasses, ChangeWhereALayerComesAgain) {
  const uint64_t words[] = {1, 2};
  SignatureUse use(words);
  int layers[3];
  EXPECT_FALSE(use.sizes_change(0, &layers[0]));
  use.count(&layers[0]);
  EXPECT_FALSE(use.sizes_change(1, &layers[0] + 64 / sizeof(int)));  // another layer of the same step
  EXPECT_TRUE(use.sizes_change(1, &layers[0]));
  EXPECT_FALSE(use.sizes_change(3, nullptr));
  EXPECT_TRUE(use.sizes_change(4, nullptr));
  for (int i = 0; i < 40; ++i) use.count(nullptr);
  EXPECT_TRUE(use.sizes_change(2, nullptr));
  EXPECT_FALSE(use.sizes_change(1, nullptr));
}

TEST(SizeClasses, RecurOnceAndOnlyWhereAVariantIsForAll) {
  const uint64_t words[] = {1};
  auto signature = std::make_shared<SignatureUse>(words);
  SizeUse one(signature, false), all(signature, true);
  program::SymbolValues often, now_and_then;
  often.push_back(5);
  int told = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    EXPECT_FALSE(one.count(often, nullptr));
    now_and_then.resize(0);
    now_and_then.push_back(1000 + i);
    told += all.count(now_and_then, nullptr);
    EXPECT_EQ(told, 0) << i;
  }
  for (int64_t i = 0; i < 1000; ++i) told += all.count(often, nullptr);
  EXPECT_EQ(told, 1);
}

}  // namespace
}  // namespace brasa
