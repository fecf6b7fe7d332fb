#include "tensor/autocast.h"

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <map>

#include "ops/table.h"

namespace brasa {
namespace {

Tensor weight(IntArrayRef sizes) { return randn(sizes).set_requires_grad(true); }

// PyTorch's lists name operators without their overloads.
TEST(Autocast, OverloadsShareAPolicy) {
  std::map<std::string_view, ops::Autocast> policies;
  for (const ops::Row& row : ops::table().rows()) {
    if (row.is_primitive()) continue;
    auto it = policies.emplace(row.schema.base, row.autocast).first;
    EXPECT_EQ(it->second, row.autocast) << row.name();
  }
  EXPECT_EQ(policies["mm"], ops::Autocast::Lower);
  EXPECT_EQ(policies["mse_loss"], ops::Autocast::Float32);
  EXPECT_EQ(policies["cat"], ops::Autocast::Widest);
  EXPECT_EQ(policies["add"], ops::Autocast::None);
}

TEST(Autocast, DtypesOfResults) {
  Tensor x = randn({2, 3}), image = randn({1, 2, 5, 5});
  Tensor low = x.to(kBFloat16);
  AutocastMode guard;
  EXPECT_EQ(x.matmul(x.t()).scalar_type(), kBFloat16);
  EXPECT_EQ(linear(x, randn({4, 3}), randn({4})).scalar_type(), kBFloat16);
  EXPECT_EQ(conv2d(image, randn({3, 2, 3, 3})).scalar_type(), kBFloat16);
  EXPECT_EQ(addmm(randn({2}), x, randn({3, 2})).scalar_type(), kBFloat16);
  EXPECT_EQ(einsum("ij,kj->ik", {x, x}).scalar_type(), kBFloat16);
  EXPECT_EQ(rnn_tanh_cell(x, zeros({2, 4}), randn({4, 3}), randn({4, 4})).scalar_type(), kBFloat16);
  Tensor w = weight({16, 3}), state = zeros({1, 2, 4});
  auto [steps, h, c] = lstm(x.unsqueeze(0), {state, state}, {w, weight({16, 4})}, false, 1, 0.0, false, false, false);
  EXPECT_EQ(steps.scalar_type(), kBFloat16);
  EXPECT_EQ(c.scalar_type(), kBFloat16);
  steps.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat32);
  EXPECT_EQ(mse_loss(low, x).scalar_type(), kFloat32);
  EXPECT_EQ(low.prod().scalar_type(), kFloat32);
  EXPECT_EQ(cat({low, x}).scalar_type(), kFloat32);
  EXPECT_EQ(cat({low, low}).scalar_type(), kBFloat16);
  EXPECT_EQ(stack({low, low}).scalar_type(), kBFloat16);
  // Neither list, float64, integers, in place, out=: as without autocast.
  EXPECT_EQ((low + low).scalar_type(), kBFloat16);
  EXPECT_EQ((low + x).scalar_type(), kFloat32);
  EXPECT_EQ(x.softmax(-1).scalar_type(), kFloat32);
  EXPECT_EQ(x.to(kFloat64).matmul(x.to(kFloat64).t()).scalar_type(), kFloat64);
  EXPECT_EQ(ones({2, 2}, kInt64).matmul(ones({2, 2}, kInt64)).scalar_type(), kInt64);
  Tensor sum = zeros({2, 2}), out = zeros({2, 2});
  sum.addmm_(x, x.t());
  EXPECT_EQ(sum.scalar_type(), kFloat32);
  EXPECT_TRUE(sum.equal([&] {
    AutocastMode off(kBFloat16, false);
    return x.matmul(x.t());
  }()));
  matmul_out(out, x, x.t());
  EXPECT_EQ(out.scalar_type(), kFloat32);
}

TEST(Autocast, GuardsNestAndEnd) {
  Tensor x = randn({2, 2});
  DeviceType here = x.device().type();
  EXPECT_FALSE(autocast::is_autocast_enabled(here));
  {
    AutocastMode half(here, kFloat16);
    EXPECT_EQ(x.mm(x).scalar_type(), kFloat16);
    {
      AutocastMode off(here, kFloat16, false);
      EXPECT_EQ(x.mm(x).scalar_type(), kFloat32);
      AutocastMode brain(here, kBFloat16);
      EXPECT_EQ(x.mm(x).scalar_type(), kBFloat16);
    }
    EXPECT_EQ(x.mm(x).scalar_type(), kFloat16);
  }
  EXPECT_EQ(x.mm(x).scalar_type(), kFloat32);
  autocast::set_autocast_enabled(here, true);
  EXPECT_EQ(x.mm(x).scalar_type(), autocast::get_autocast_dtype(here));
  autocast::set_autocast_enabled(here, false);
  AutocastMode gpu(kCUDA, kFloat16);
  EXPECT_EQ(x.mm(x).scalar_type(), kFloat32);
}

TEST(Autocast, OtherDtypesWarnAndStayOff) {
  struct Handler : WarningHandler {
    void process(const SourceLocation&, const std::string& message, bool) override { said = message; }
    std::string said;
  } handler;
  Warning::set_warning_handler(&handler);
  {
    AutocastMode guard(kFloat64);
    EXPECT_FALSE(autocast::is_autocast_enabled(kCPU));
  }
  Warning::set_warning_handler(nullptr);
  EXPECT_NE(handler.said.find("not supported"), std::string::npos);
}

TEST(Autocast, GradientsHaveTheWeightsDtypeAndBackwardThatOfForward) {
  manual_seed(1);
  Tensor x = randn({4, 3}), w = weight({5, 3}), b = weight({5});
  Tensor y;
  {
    AutocastMode guard;
    y = linear(x, w, b);
  }
  y.sum().backward();
  EXPECT_EQ(w.grad().scalar_type(), kFloat32);
  // As by hand: the products of bfloat16 numbers, rounded to bfloat16.
  Tensor by_hand = ones({5, 4}).mm(x.to(kBFloat16).to(kFloat32)).to(kBFloat16).to(kFloat32);
  EXPECT_TRUE(w.grad().equal(by_hand)) << w.grad() << by_hand;
  // A backward inside the guard is the same.
  Tensor first = w.grad().clone();
  w.mutable_grad().reset();
  {
    AutocastMode guard;
    linear(x, w, b).sum().backward();
  }
  EXPECT_TRUE(w.grad().equal(first));
}

// The nodes between a result and its weight.
std::shared_ptr<autograd::Node> cast_of(const Tensor& product) { return product.grad_fn()->next_edge(1).function; }

TEST(Autocast, AWeightIsConvertedOnceInTheOutermostGuard) {
  Tensor x = randn({2, 3}), w = weight({3, 3});
  std::shared_ptr<autograd::Node> first;
  {
    AutocastMode guard;
    first = cast_of(x.mm(w));
    {
      AutocastMode inner;
      EXPECT_EQ(cast_of(x.mm(w)), first);
    }
    EXPECT_EQ(cast_of(x.mm(w)), first);
    {
      NoGradGuard no_grad;
      EXPECT_FALSE(x.mm(w).requires_grad());
    }
    EXPECT_TRUE(x.mm(w).requires_grad());
    // A weight that changed is converted again.
    Tensor before = x.mm(w).detach();
    {
      NoGradGuard no_grad;
      w.mul_(2);
    }
    EXPECT_FALSE(x.mm(w).equal(before));
    AutocastMode uncached(kBFloat16, true, false);
    EXPECT_NE(cast_of(x.mm(w)), cast_of(x.mm(w)));
  }
  AutocastMode guard;
  EXPECT_NE(cast_of(x.mm(w)), first);
}

TEST(Autocast, OneConvertedWeightServesTwoBackwards) {
  Tensor x = randn({2, 3}), w = weight({3, 3});
  AutocastMode guard;
  Tensor first = x.mm(w).sum(), second = x.mm(w).exp().sum();
  first.backward();
  Tensor once = w.grad().clone();
  second.backward();
  EXPECT_FALSE(w.grad().equal(once));
  // What reads values still has none for a second time.
  EXPECT_THROW(second.backward(), Error);
}

TEST(Autocast, CachedCast) {
  Tensor w = weight({2, 2});
  EXPECT_TRUE(autocast::cached_cast(kFloat32, w).is_same(w));
  AutocastMode guard;
  Tensor low = autocast::cached_cast(kBFloat16, w);
  EXPECT_TRUE(autocast::cached_cast(kBFloat16, w).is_same(low));
  Tensor wide = ones({2}, kFloat64);
  EXPECT_TRUE(autocast::cached_cast(kBFloat16, wide).is_same(wide));
}

TEST(Autocast, BiasIsAddedBeforeRounding) {
  manual_seed(2);
  Tensor x = randn({64, 16}).to(kBFloat16), w = randn({8, 16}).to(kBFloat16), b = randn({8}).to(kBFloat16);
  Tensor exact = x.to(kFloat32).mm(w.to(kFloat32).t()) + b.to(kFloat32);
  EXPECT_TRUE(linear(x, w, b).equal(exact.to(kBFloat16)));
  Tensor image = randn({2, 3, 8, 8}).to(kBFloat16), kernel = randn({4, 3, 4, 4}).to(kBFloat16),
         bias = randn({4}).to(kBFloat16);
  Tensor wide = conv2d(image.to(kFloat32), kernel.to(kFloat32), bias.to(kFloat32), {4, 4});
  EXPECT_TRUE(conv2d(image, kernel, bias, {4, 4}).equal(wide.to(kBFloat16)));
}

}  // namespace
}  // namespace brasa
