#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "gpu/on_device.h"
#include "support/str.h"

// Attention of reduced floats and of float32 in TF32, eager and compiled, with its gradients, and theirs: the CPU's results on an emulated GPU, and on a GPU where
// there is one.
namespace brasa {
namespace {

class Attention : public OnDevice {
 protected:
  void TearDown() override { set_float32_matmul_precision("highest"); }
};

void expect_close(const Tensor& a, const Tensor& b, const std::string& what, double roundings = 1) {
  Tensor x = a.cpu().to(kFloat64), y = b.to(kFloat64);
  double bound = roundings * (a.scalar_type() == kFloat32 ? 2e-3 : 1e-2);
  EXPECT_LE((x - y).norm().item<double>(), bound * y.norm().item<double>() + 1e-5) << what;
}

// Results of a function of a tensor, on the device and on the CPU in float64: the value and the gradient.
template <class F>
void same(Device device, const F& f, const Tensor& x, bool compiled, const std::string& what) {
  auto run = [&](Tensor given, bool through) {
    given = given.detach().requires_grad_();
    Tensor y = through ? compile(f)(given) : f(given);
    // Not the same in every row.
    Tensor ct = (arange(y.numel(), kFloat32).view(y.sizes()) * 0.37).sin().to(x.scalar_type()).to(y.scalar_type());
    y.backward(ct.to(y.device()));
    return std::pair{y.detach(), given.grad()};
  };
  auto [got, got_gradient] = run(x.to(device), compiled);
  auto [want, gradient] = run(x.to(kFloat64), false);
  expect_close(got, want, what);
  expect_close(got_gradient, gradient, what + ", gradient");
}

TEST_P(Attention, OfPackedHeads) {
  set_float32_matmul_precision("high");
  for (DType dtype : {kBFloat16, kFloat16, kFloat32})
    for (bool causal : {false, true})
      for (auto [length, features] :
           {std::pair<int64_t, int64_t>{197, 64}, {300, 64}, {1, 64}, {40, 128}, {33, 24}, {20, 5}}) {
        auto f = [=, length = length, features = features](const Tensor& x) {
          auto parts = x.view({2, length, 3, 3, features}).permute({2, 0, 3, 1, 4}).unbind(0);
          Tensor y = scaled_dot_product_attention(parts[0], parts[1], parts[2], std::nullopt, 0.0, causal);
          return y.transpose(1, 2).reshape({2, length, 3 * features});
        };
        Tensor x = randn({2, length, 9 * features}).to(dtype);
        for (bool compiled : {true, false})
          same(device_, f, x, compiled,
               str(name(dtype), causal ? " causal " : " ", length, " ", features, compiled ? "" : " eager"));
      }
}

// Queries and keys of different lengths, heads of any shape, masks, a scale.
TEST_P(Attention, OfOtherCalls) {
  Tensor k = randn({2, 3, 50, 16}).to(kBFloat16), x = randn({2, 3, 21, 16}).to(kBFloat16), mask = randn({21, 50});
  auto on = [](const Tensor& t, const Tensor& like) { return t.to(like.scalar_type()).to(like.device()); };
  auto keys = [&](const Tensor& q) { return on(k, q); };
  same(device_, [&](const Tensor& q) { return scaled_dot_product_attention(q, keys(q), keys(q)); }, x, true, "keys");
  same(device_, [&](const Tensor& q) { return scaled_dot_product_attention(keys(q), q, q * 2); }, x, true, "queries");
  same(
      device_, [&](const Tensor& q) { return scaled_dot_product_attention(q, keys(q), keys(q), on(mask, q)); }, x, true,
      "mask");
  for (double scale : {0.5, -0.5, 0.0})
    same(
        device_,
        [&](const Tensor& q) { return scaled_dot_product_attention(q, q, q, std::nullopt, 0.0, scale > 0, scale); }, x,
        true, str("scale ", scale));
  same(
      device_, [&](const Tensor& q) { return scaled_dot_product_attention(q[0], q[0], q[1]); }, x, true,
      "without batches");
}

TEST_P(Attention, GradientOfAGradient) {
  Tensor x = randn({1, 2, 9, 8}).to(kBFloat16);
  auto twice = [](const Tensor& given) {
    Tensor q = given.detach().requires_grad_();
    Tensor first =
        autograd::grad({scaled_dot_product_attention(q, q * 0.5, q).sin().sum()}, {q}, {}, std::nullopt, true)[0];
    return autograd::grad({first.square().sum()}, {q})[0];
  };
  // The first gradient is rounded, its square's, and what both are made of.
  expect_close(twice(x.to(device_)), twice(x.to(kFloat64)), "twice", 4);
}

INSTANTIATE_TEST_SUITE_P(Devices, Attention, testing::Values("emu", "cuda"), [](const auto& i) { return i.param; });

}  // namespace
}  // namespace brasa
