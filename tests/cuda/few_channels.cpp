#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include "../ptxas.h"
#include "fake.h"
#include "runtime/cuda/few_channels.h"
#include "support/str.h"

// Convolutions of images with few channels by kernels of our own, whose text the fake driver runs: nothing else computes anything there.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

using runtime::cuda::Computed;
using runtime::cuda::FewChannelsKind;

struct Case {
  FewChannelsKind kind;
  int64_t images, height;  // of results
};

runtime::cuda::Convolution described(const Case& c, Computed computed) {
  int64_t across = 64 / c.kind.channels;
  return {computed,
          c.kind.dtype,
          {c.images, c.height + c.kind.taps - 1, c.kind.columns + across - 1, c.kind.channels},
          {64, c.kind.taps, across, c.kind.channels},
          {c.images, c.height, c.kind.columns, 64},
          nullptr,
          nullptr,
          nullptr,
          {1, 1},
          {0, 0},
          {1, 1}};
}

// Operands are exact in float64, results are rounded once, and sums in float32 lose less than that.
void expect_close(const Tensor& got, const Tensor& want, DType dtype, const std::string& what) {
  double bound = dtype == kBFloat16 ? 0x1p-8 : 0x1p-11;
  Tensor x = got.cpu().to(kFloat64);
  EXPECT_LE((x - want).norm().item<double>(), bound * want.norm().item<double>()) << what;
}

void check(const Case& c) {
  runtime::cuda::Convolution forward = described(c, Computed::Result), by_weight = described(c, Computed::Weight);
  std::string what = str(name(c.kind.dtype), " ", forward.image, " ", forward.weight);
  auto random = [&](const std::vector<int64_t>& sizes) { return randn(sizes).to(c.kind.dtype); };
  Tensor image = random(forward.image), weight = random(forward.weight), ct = random(forward.result);
  auto second = [](const Tensor& x) { return x.to(kFloat64).permute({0, 3, 1, 2}); };
  Tensor w = second(weight).detach();
  w.requires_grad_();
  Tensor want = conv2d(second(image), w);
  want.backward(second(ct));

  runtime::Device& device = runtime::device_of(kCUDA);
  Tensor image_there = image.to(kCUDA), weight_there = weight.to(kCUDA), ct_there = ct.to(kCUDA);
  TensorOptions there = TensorOptions(kCUDA).dtype(c.kind.dtype);
  Tensor result = empty(forward.result, there), gradient = empty(forward.weight, there);
  forward.image_data = by_weight.image_data = image_there.data_ptr();
  forward.weight_data = weight_there.data_ptr();
  forward.result_data = result.data_ptr();
  by_weight.result_data = ct_there.data_ptr();
  by_weight.weight_data = gradient.data_ptr();
  for (const auto* each : {&forward, &by_weight}) {
    ASSERT_TRUE(takes_few_channels(*each, device)) << what;
    run_few_channels(*each, device, runtime::kDefaultStream);
  }
  expect_close(result, want.detach().permute({0, 2, 3, 1}), c.kind.dtype, what);
  expect_close(gradient, w.grad().permute({0, 2, 3, 1}), c.kind.dtype, what + " by weight");
}

TEST(FewChannels, Kernels) {
  check({{kBFloat16, 16, 4, 112}, 2, 3});
  check({{kFloat16, 8, 3, 20}, 1, 5});
  check({{kBFloat16, 32, 1, 128}, 1, 2});
  check({{kFloat16, 16, 2, 1}, 3, 1});
  // More rows than blocks: these go from row to row, and from image to image.
  check({{kBFloat16, 16, 4, 16}, 7, 100});
}

TEST(FewChannels, WhatTheyLeave) {
  runtime::Device& device = runtime::device_of(kCUDA);
  auto takes = [&](auto&& change) {
    runtime::cuda::Convolution c = described({{kBFloat16, 16, 4, 112}, 2, 3}, Computed::Result);
    change(c);
    return takes_few_channels(c, device);
  };
  EXPECT_TRUE(takes([](auto&) {}));
  EXPECT_FALSE(takes([](auto& c) { c.dtype = kFloat32; }));
  EXPECT_FALSE(takes([](auto& c) { c.computed = Computed::Image; }));
  EXPECT_FALSE(takes([](auto& c) { c.stride = {2, 1}; }));
  EXPECT_FALSE(takes([](auto& c) { c.padding = {0, 1}; }));
  EXPECT_FALSE(takes([](auto& c) { c.dilation = {2, 1}; }));
  EXPECT_FALSE(takes([](auto& c) { c.weight[0] = 128; }));
  EXPECT_FALSE(takes([](auto& c) { c.weight[1] = 5; }));
  EXPECT_FALSE(takes([](auto& c) { c.result[2] = 129; }));
  EXPECT_FALSE(takes([](auto& c) { c.image[3] = 32; }));  // groups
  EXPECT_FALSE(takes([](auto& c) { c.image[0] = c.result[0] = 0; }));
  EXPECT_FALSE(takes([](auto& c) { c.image_data = reinterpret_cast<void*>(8); }));
}

// The first convolution of a network: its steps become channels, and these kernels compute it and its weights' gradient.
TEST(FewChannels, TheFirstOfANetwork) {
  manual_seed(1);
  Tensor x = randn({2, 3, 32, 32}).to(kBFloat16), w = randn({64, 3, 7, 7}).to(kBFloat16);
  auto f = [](const Tensor& image, const Tensor& weight) { return conv2d(image, weight, {}, {2, 2}, {3, 3}); };
  auto of = [&](const Tensor& image, Tensor weight) {
    weight.requires_grad_();
    Tensor y = compile(f)(image, weight);
    y.backward(ones_like(y));
  };
  int before = test::fake_driver().calls("written kernel");
  of(x.to(kCUDA), w.to(kCUDA));
  EXPECT_GE(test::fake_driver().calls("written kernel") - before, 3);
}

TEST(FewChannels, Assemble) {
  if (!test::have_ptxas()) GTEST_SKIP() << "there is no ptxas";
  for (FewChannelsKind kind : {FewChannelsKind{kBFloat16, 16, 4, 112}, {kFloat16, 8, 3, 20}, {kBFloat16, 32, 4, 128}})
    for (auto* write : {runtime::cuda::few_channels_forward, runtime::cuda::few_channels_by_weight,
                        runtime::cuda::few_channels_sum}) {
      runtime::cuda::WrittenKernel kernel = write(kind);
      EXPECT_TRUE(test::assembles(kernel.text, "-arch=sm_90a --warn-on-spills --warning-as-error")) << kernel.name;
    }
}

}  // namespace
}  // namespace brasa
