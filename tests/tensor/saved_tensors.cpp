// Hooks for what operators save for their backward passes.
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/checkpoint.h>
#include <brasa/saved_tensors.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

using autograd::SavedTensorsHooks;

TEST(SavedTensorsHooks, NodesKeepWhatPackMakes) {
  Tensor x = randn({5, 4}).requires_grad_(), w = randn({4, 3}).requires_grad_();
  auto run = [&] { return (x.mm(w).tanh() * x.exp().sum()).square().sum(); };
  std::vector<Tensor> expected = autograd::grad({run()}, {x, w});
  int packed = 0, unpacked = 0;
  Tensor y;
  {
    SavedTensorsHooks hooks(
        [&](const Tensor& t) {
          ++packed;
          EXPECT_FALSE(t.requires_grad());
          return t * 2;
        },
        [&](const std::any& kept) {
          ++unpacked;
          return std::any_cast<Tensor>(kept) / 2;
        });
    y = run();
  }
  EXPECT_GE(packed, 6);
  EXPECT_EQ(unpacked, 0);
  (void)x.exp();  // behind them nothing is packed
  int before = packed;
  std::vector<Tensor> got = autograd::grad({y}, {x, w}, {}, true);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(got[i].equal(expected[i])) << i;
  EXPECT_EQ(packed, before);
  EXPECT_GE(unpacked, packed - 1);
  // Each time that it is needed.
  int first = unpacked;
  (void)autograd::grad({y}, {x, w});
  EXPECT_EQ(unpacked, 2 * first);
}

TEST(SavedTensorsHooks, SecondDerivativesAndSavedResults) {
  Tensor x = randn({6}).requires_grad_();
  auto twice = [&] {
    Tensor g = autograd::grad({x.exp().tanh().sum()}, {x}, {}, true, true)[0];
    return autograd::grad({(g * g).sum()}, {x})[0];
  };
  Tensor expected = twice();
  SavedTensorsHooks hooks([](const Tensor& t) { return t.clone(); },
                          [](const std::any& kept) { return std::any_cast<Tensor>(kept); });
  EXPECT_TRUE(allclose(twice(), expected, 1e-6, 1e-7));
}

TEST(SavedTensorsHooks, TheInnermostHoldAndACheckpointInside) {
  std::string seen;
  auto hooks = [&](char name) {
    return std::make_unique<SavedTensorsHooks>(
        [&seen, name](const Tensor& t) {
          seen += name;
          return t;
        },
        [](const std::any& kept) { return std::any_cast<Tensor>(kept); });
  };
  Tensor x = ones({3}).requires_grad_();
  auto a = hooks('a');
  Tensor y = x.exp();
  {
    auto b = hooks('b');
    y = y.exp();
  }
  y = checkpoint([](const Tensor& t) { return t.sin().exp(); }, y);
  y = y.exp();
  y.sum().backward();
  EXPECT_EQ(seen, "aba");
}

TEST(SavedTensorsHooks, WhatUnpackGivesIsChecked) {
  Tensor x = ones({3}).requires_grad_(), y, z;
  {
    SavedTensorsHooks hooks([](const Tensor&) { return 1; }, [](const std::any&) { return Tensor(); });
    y = x.exp();
  }
  {
    SavedTensorsHooks hooks([](const Tensor&) { return 1; }, [](const std::any&) { return ones({4}); });
    z = x.exp();
  }
  EXPECT_THROW(y.sum().backward(), Error);
  EXPECT_THROW(z.sum().backward(), Error);
  EXPECT_THROW(SavedTensorsHooks(nullptr, nullptr), Error);
}

}  // namespace
}  // namespace brasa
