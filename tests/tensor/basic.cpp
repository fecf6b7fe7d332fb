#include "tensor/util.h"

#include <cmath>

#include "compiler/kernels/kernels.h"

namespace brasa {
namespace {

using namespace testing;

TEST(Tensor, MetadataOfAFactory) {
  Tensor t = zeros({2, 3}, kFloat);
  EXPECT_EQ(t.dim(), 2);
  EXPECT_EQ(t.sizes(), IntArrayRef({2, 3}));
  EXPECT_EQ(t.strides(), IntArrayRef({3, 1}));
  EXPECT_EQ(t.numel(), 6);
  EXPECT_EQ(t.size(-1), 3);
  EXPECT_EQ(t.scalar_type(), kFloat);
  EXPECT_TRUE(t.is_contiguous());
  expect_values(t, {0, 0, 0, 0, 0, 0});
}

TEST(Tensor, LiteralsHaveLibTorchsDtypes) {
  EXPECT_EQ(tensor({1, 2}).scalar_type(), kLong);
  EXPECT_EQ(tensor({1.5, 2.0}).scalar_type(), kFloat);
  EXPECT_EQ(tensor({true, false}).scalar_type(), kBool);
  EXPECT_EQ(tensor(3).dim(), 0);
  EXPECT_EQ(tensor({{1, 2}, {3, 4}}).sizes(), IntArrayRef({2, 2}));
  EXPECT_EQ(tensor({1.0}, kFloat64).scalar_type(), kDouble);
  EXPECT_NE(error_of([] { tensor({{1, 2}, {3}}); }), "");
}

TEST(Tensor, ArithmeticBroadcasts) {
  Tensor a = tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 6.0}}), b = tensor({10.0, 20.0, 30.0}), c = tensor({{1.0}, {2.0}});
  expect_values(a + b, {11, 22, 33, 14, 25, 36});
  expect_values(a * c, {1, 2, 3, 8, 10, 12});
  expect_values(b + c, {11, 21, 31, 12, 22, 32});
  expect_values(2 - a, {1, 0, -1, -2, -3, -4});
  expect_values(1 / a, {1, 0.5, 1.0 / 3, 0.25, 0.2, 1.0 / 6});
  EXPECT_TRUE(contains(error_of([&] { a + tensor({1.0, 2.0}); }), "must match the size of tensor b (2)"));
}

TEST(Tensor, PromotionCountsNumbersByCategoryOnly) {
  Tensor i = tensor({1, 2, 3}), f = tensor({1.0, 2.0, 3.0}), h = f.to(kHalf);
  EXPECT_EQ((i + 1).scalar_type(), kLong);
  EXPECT_EQ((i + 1.5).scalar_type(), kFloat);
  EXPECT_EQ((h + 1.5).scalar_type(), kHalf);
  EXPECT_EQ((h + f).scalar_type(), kFloat);
  EXPECT_EQ((h + scalar_tensor(1.5, kDouble)).scalar_type(), kHalf);
  EXPECT_EQ((i / 2).scalar_type(), kFloat);
  EXPECT_EQ((i == 2).scalar_type(), kBool);
}

TEST(Tensor, OneKernelServesEverySize) {
  for (int64_t n : {0, 1, 2, 7, 1000}) {
    Tensor a = full({n, 3}, 2.0), b = full({3}, 0.5);
    Tensor c = a * b;
    EXPECT_EQ(c.sizes(), IntArrayRef({n, 3}));
    for (double v : values(c)) EXPECT_EQ(v, 1);
  }
}

TEST(Tensor, SizesOfOneDoNotSpecialiseTheGeneralCase) {
  auto run = [](int64_t m, int64_t k, int64_t n) {
    expect_values(ones({m, k}).matmul(ones({k, n})), std::vector<double>(m * n, static_cast<double>(k)));
    expect_values(ones({m, k}).softmax(1).sum(1), std::vector<double>(m, k ? 1.0 : 0.0));
  };
  run(1, 1, 1);
  run(2, 3, 4);
  run(1, 5, 2);
  run(3, 1, 1);
}

TEST(Tensor, InPlaceWritesTheMemory) {
  Tensor a = tensor({1.0, 2.0, 3.0, 4.0}).view({2, 2}), row = a[1];
  a.add_(10);
  expect_values(row, {13, 14});
  row.mul_(2);
  expect_values(a, {11, 12, 26, 28});
  a += a.t().clone();
  expect_values(a, {22, 38, 38, 56});
  EXPECT_TRUE(contains(error_of([] { tensor({1, 2}).add_(1.5); }), "can't be cast"));
  EXPECT_TRUE(contains(error_of([] { zeros({3, 1}).add_(zeros({3, 4})); }), "doesn't match the broadcast shape"));
  EXPECT_TRUE(contains(error_of([] { zeros({3, 1}).expand({3, 4}).add_(1); }), "single memory location"));
}

TEST(Tensor, InPlaceOfAnOverlappingViewReadsTheOldValues) {
  Tensor a = tensor({1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  a.slice(0, 2, 6, 2).copy_(a.slice(0, 0, 4, 2));
  expect_values(a, {1, 2, 1, 4, 3, 6});
}

TEST(Tensor, StridedOperands) {
  Tensor a = arange(6, kFloat).view({2, 3});
  expect_values(a.t() + 1, {1, 4, 2, 5, 3, 6});
  expect_values(a.slice(1, 0, 3, 2) * a.slice(1, 0, 3, 2), {0, 4, 9, 25});
  expect_values(a.t().matmul(a), {9, 12, 15, 12, 17, 22, 15, 22, 29});
  EXPECT_EQ((a.t() + 1).strides(), IntArrayRef({1, 3}));
  EXPECT_EQ(a.t().contiguous().strides(), IntArrayRef({2, 1}));
}

TEST(Tensor, OutVariants) {
  Tensor out;
  add_out(out, tensor({1.0}), tensor({2.0}));
  expect_values(out, {3});
  Tensor kept = empty({0});
  mul_out(kept, tensor({2.0, 3.0}), tensor({2.0, 2.0}));
  expect_values(kept, {4, 6});
}

TEST(Tensor, ItemAndData) {
  EXPECT_EQ(tensor(2.5).item<double>(), 2.5);
  EXPECT_EQ(tensor({7}).item<int>(), 7);
  EXPECT_TRUE(contains(error_of([] { tensor({1, 2}).item(); }), "2 elements"));
  EXPECT_TRUE(
      contains(error_of([] { tensor({1, 2}).data_ptr<float>(); }), "expected scalar type Float but found Long"));
  Tensor a = arange(6).view({2, 3}).cpu();
  auto at = a.accessor<int64_t, 2>();
  EXPECT_EQ(at[1][2], 5);
  EXPECT_EQ(at.size(1), 3);
}

TEST(Tensor, ConversionsBetweenDtypes) {
  Tensor a = tensor({0.0, 1.7, -2.2});
  expect_values(a.to(kLong), {0, 1, -2});
  expect_values(a.to(kBool), {0, 1, 1});
  EXPECT_TRUE(a.to(kFloat).is_same(a));
  EXPECT_FALSE(a.to(kFloat, false, true).is_same(a));
  expect_values(a.to(kBFloat16).to(kFloat), {0, 1.703125, -2.203125});
}

TEST(Tensor, UndefinedTensorsAreErrors) {
  Tensor none;
  EXPECT_NE(error_of([&] { none + tensor(1); }), "");
  EXPECT_NE(error_of([&] { tensor(1.0).add_(none); }), "");
  EXPECT_NE(error_of([&] { none.sizes(); }), "");
  EXPECT_NE(error_of([&] { none.backward(); }), "");
  EXPECT_NE(error_of([&] { none.requires_grad(); }), "");
  EXPECT_NE(error_of([&] { cat({none, tensor({1})}); }), "");
}

TEST(Tensor, EqualAndAllclose) {
  Tensor a = tensor({1.0, 2.0});
  EXPECT_TRUE(a.equal(a.clone()));
  EXPECT_FALSE(a.equal(tensor({1.0, 3.0})));
  EXPECT_FALSE(a.equal(tensor({1.0})));
  EXPECT_TRUE(allclose(a, a + 1e-7));
  EXPECT_FALSE(allclose(a, a + 1e-2));
}

TEST(Tensor, RandomNumbersFollowTheSeed) {
  manual_seed(3);
  Tensor a = rand({5}), b = rand({5});
  manual_seed(3);
  EXPECT_TRUE(a.equal(rand({5})));
  EXPECT_TRUE(b.equal(rand({5})));
  EXPECT_FALSE(a.equal(b));
  Generator own(3);
  EXPECT_TRUE(a.equal(rand({5}, {}, own)));
}

TEST(Tensor, BorrowedMemory) {
  std::vector<float> host = {1, 2, 3, 4};
  bool freed = false;
  {
    Tensor t = from_blob(host.data(), {2, 2}, [&](void*) { freed = true; });
    t.mul_(2);
  }
  EXPECT_TRUE(freed);
  EXPECT_EQ(host[3], 8);
}

TEST(Tensor, CallsByName) {
  std::vector<Tensor> r = call("aten::add.Tensor", {tensor({1.0}), tensor({2.0})});
  expect_values(r[0], {3});
  Tensor a = tensor({1.0});
  call("aten::add_.Tensor", {a, tensor({5.0})});
  expect_values(a, {6});
  EXPECT_TRUE(contains(error_of([] { call("aten::no_such", ArrayRef<CallArg>()); }), "no operator"));
}

TEST(Tensor, FactoriesAskTheCompilerOncePerSignature) {
  auto asked = [] {
    compiler::KernelCounts c = compiler::kernel_counts();
    return c.compiled + c.disk + c.pack + c.memory;
  };
  auto make = [](int64_t n) {
    return randn({n, 3}).sum() + rand({n}).sum() + full({n, n, 2}, 0.5).sum() + randint(5, {n}).sum();
  };
  make(4);
  int64_t before = asked();
  EXPECT_TRUE(std::isfinite(make(7).item<double>()));
  EXPECT_EQ(asked(), before);
  EXPECT_THROW(zeros({2, -1}), Error);
}

TEST(Gradients, AreZeroWhereTheDerivativeIs) {
  Tensor x = arange(3, kFloat).requires_grad_();
  (x.floor().sum() + x.detach().sum()).backward();
  ASSERT_TRUE(x.grad().defined());
  expect_values(x.grad(), {0, 0, 0});
  EXPECT_FALSE(ones_like(x).requires_grad());
  EXPECT_TRUE(contains(error_of([&] { x.floor().requires_grad_(false); }), "leaf"));
}

// What a node keeps is what the derivative reads that it was asked for: not what one without a broadcast operand would read.
TEST(Gradients, OfGradientsReadWhatWasKept) {
  using Operator = Tensor (*)(const Tensor&, const Tensor&);
  const Operator operators[] = {
      [](const Tensor& a, const Tensor& b) { return logaddexp(a, b); },
      [](const Tensor& a, const Tensor& b) { return logaddexp2(a, b); },
      [](const Tensor& a, const Tensor& b) { return copysign(a, b); },
      [](const Tensor& a, const Tensor& b) { return xlogy(a, b); },
      [](const Tensor& a, const Tensor& b) { return special_xlog1py(a, b); },
      [](const Tensor& a, const Tensor& b) { return remainder(a, b); },
  };
  const std::vector<int64_t> sizes[][2] = {{{6}, {1}}, {{1}, {6}}, {{2, 3}, {3}}, {{2, 1}, {1, 3}}, {{}, {4}}};
  auto numbers = [](IntArrayRef shape, double step) {
    int64_t n = 1;
    for (int64_t s : shape) n *= s;
    return ((arange(n, kDouble) * step + 0.3).sin() * 0.3 + 0.6).reshape(shape).clone().requires_grad_();
  };
  for (const Operator& f : operators)
    for (const auto& [a_sizes, b_sizes] : sizes) {
      std::vector<Tensor> results[2];
      for (bool spread : {false, true}) {
        Tensor a = numbers(a_sizes, 0.7), b = numbers(b_sizes, 1.3), y;
        if (spread) {
          std::vector<Tensor> both = broadcast_tensors({a, b});
          y = f(both[0] * 1, both[1] * 1);
        } else {
          y = f(a, b);
        }
        Tensor loss = y.sin().sum();
        for (int order = 1; order <= 3 && loss.requires_grad(); ++order) {
          std::vector<Tensor> g = autograd::grad({loss}, {a, b}, {}, true, true, true);
          loss = zeros({}, kDouble);
          for (const Tensor& t : g) {
            results[spread].push_back(t.defined() ? t.detach() : zeros({}, kDouble));
            if (t.defined()) loss = loss + t.sin().sum();
          }
        }
      }
      ASSERT_EQ(results[0].size(), results[1].size());
      for (size_t i = 0; i < results[0].size(); ++i)
        EXPECT_TRUE(allclose(results[0][i], results[1][i], 1e-9, 1e-9)) << i;
    }
}

// The gradient of an operand that was broadcast is summed up, and is differentiated again through that sum; at size 1, which sums up
// nothing, before and after others.
// The second derivative's operands are smaller than the loop that works on them: rows of different values show which one it reads.
TEST(Gradients, SecondDerivativesOfRowsThatDiffer) {
  const std::vector<int64_t> large{3, 4, 5};
  for (int mask = 0; mask < 64; ++mask) {
    std::vector<int64_t> a_sizes, b_sizes;
    for (int d = 0; d < 3; ++d) {
      a_sizes.push_back(mask >> d & 1 ? 1 : large[d]);
      b_sizes.push_back(mask >> (3 + d) & 1 ? 1 : large[d]);
    }
    auto penalty = [](const Tensor& a, const Tensor& b) {
      Tensor y = (a * b).tanh() * a;
      std::vector<Tensor> g = autograd::grad({(y * y).sum()}, {a, b}, {}, true, true);
      return g[0].pow(2).sum() + (g[1] * g[1]).sum() + (g[0] * a).pow(3).sum();
    };
    manual_seed(mask);
    Tensor a = rand(a_sizes, kDouble).requires_grad_(), b = rand(b_sizes, kDouble).requires_grad_();
    penalty(a, b).backward();
    for (const Tensor& leaf : {a, b}) {
      constexpr double kStep = 1e-6;
      Tensor at = leaf.detach().clone();
      auto value = [&](double step, int64_t i) {
        Tensor moved = at.clone();
        moved.view({-1})[i] += step;
        moved.requires_grad_();
        Tensor other = (leaf.is_same(a) ? b : a).detach().requires_grad_();
        return (leaf.is_same(a) ? penalty(moved, other) : penalty(other, moved)).item<double>();
      };
      for (int64_t i : {int64_t{0}, at.numel() / 2, at.numel() - 1}) {
        double slope = (value(kStep, i) - value(-kStep, i)) / (2 * kStep);
        EXPECT_NEAR(leaf.grad().reshape({-1})[i].item<double>(), slope, 1e-5 * (1 + std::abs(slope)))
            << mask << " " << i;
      }
    }
  }
}

TEST(Gradients, OfGradientsOfWhatIsBroadcast) {
  manual_seed(7);
  for (int64_t n : {2, 1, 5, 1, 2}) {
    Tensor x = randn({n, 4}, kDouble).requires_grad_(), w = randn({4}, kDouble).requires_grad_(),
           v = randn({n, 4}, kDouble).requires_grad_();
    std::vector<Tensor> g = autograd::grad({x * w}, {x, w}, {v}, true, true);
    EXPECT_EQ(g[1].sizes(), IntArrayRef{4});
    (g[0].square().sum() + g[1].square().sum()).backward();
    Tensor of_w = (v * x).sum(0).detach();
    EXPECT_TRUE(allclose(x.grad(), of_w * v * 2));
    EXPECT_TRUE(allclose(w.grad(), w * 2 * v.square().sum(0)));
    EXPECT_TRUE(allclose(v.grad(), v * w.square() * 2 + of_w * x * 2));

    // Of a quotient, whose second operand has size 1 in a dimension that it keeps.
    Tensor a = rand({n, 3}, kDouble).requires_grad_(), b = (rand({n, 1}, kDouble) + 1).requires_grad_();
    Tensor outer = autograd::grad({a / b}, {b}, {ones({n, 3}, kDouble)}, true, true)[0];
    EXPECT_EQ(outer.sizes(), b.sizes());
    outer.sum().backward();
    EXPECT_TRUE(allclose(b.grad(), a.sum(1, true) * 2 / b.pow(3)));
    EXPECT_TRUE(allclose(a.grad(), (-1 / b.square()).expand({n, 3})));
  }
}

// At every rank, and after the same division of floating numbers, which have results.
TEST(Division, OfIntegersByZero) {
  using Divide = Tensor (*)(const Tensor&, const Tensor&);
  const Divide forms[] = {
      [](const Tensor& a, const Tensor& b) { return floor_divide(a, b); },
      [](const Tensor& a, const Tensor& b) { return a % b; },
      [](const Tensor& a, const Tensor& b) { return fmod(a, b); },
      [](const Tensor& a, const Tensor& b) { return div(a, b, "trunc"); },
  };
  for (Divide f : forms)
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{}, {4}, {2, 3}}) {
      Tensor a = full(sizes, 7, kInt), zero = zeros_like(a);
      EXPECT_FALSE(f(a.to(kFloat), zero.to(kFloat)).isfinite().any().item<bool>());
      EXPECT_TRUE(contains(error_of([&] { f(a, zero); }), "ZeroDivisionError"));
      EXPECT_TRUE(contains(error_of([&] { f(a, zeros({}, kInt)); }), "ZeroDivisionError"));
      EXPECT_TRUE(equal(f(a, zero + 2), f(a, full({}, 2, kInt))));
    }
  EXPECT_EQ((zeros({0}, kLong) % zeros({1}, kLong)).numel(), 0);
}

}  // namespace
}  // namespace brasa
