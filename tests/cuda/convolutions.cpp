#include <brasa/autocast.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

#include "fake.h"

// Convolutions by cuDNN's calls: a fake one computes them on the emulated GPU.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

struct Counted : test::Counted {
  explicit Counted(const char* function) : test::Counted(test::fake_cudnn(), function) {}
};

void expect_close(const Tensor& a, const Tensor& b) {
  double tolerance = a.scalar_type() == kFloat32 ? 1e-5 : a.scalar_type() == kFloat16 ? 2e-3 : 1.6e-2;
  ASSERT_EQ(a.sizes(), b.sizes());
  if (a.numel() == 0) return;
  Tensor x = a.cpu().to(kFloat64), y = b.cpu().to(kFloat64);
  EXPECT_TRUE(allclose(x, y, tolerance, tolerance * (1 + y.abs().max().item<double>())))
      << (x - y).abs().max().item<double>();
}

// A convolution's result, and its gradients by image, weight and bias.
struct Case {
  std::vector<int64_t> image, weight, stride, padding, dilation;
  int64_t groups = 1;
  bool transposed = false;
  std::vector<int64_t> more = {0};  // output padding
};
std::vector<Tensor> run(const Case& c, Device device, DType dtype, bool compiled) {
  manual_seed(11);
  Tensor x = randn(c.image).to(dtype).to(device), w = randn(c.weight).to(dtype).to(device);
  int64_t outputs = c.transposed ? c.weight[1] * c.groups : c.weight[0];
  Tensor b = randn({outputs}).to(dtype).to(device);
  for (Tensor* t : {&x, &w, &b}) t->requires_grad_(true);
  auto f = [&](const Tensor& image, const Tensor& weight, const Tensor& bias) {
    return convolution(image, weight, bias, c.stride, c.padding, c.dilation, c.transposed, c.more, c.groups);
  };
  Tensor y = compiled ? compile(f)(x, w, b) : f(x, w, b);
  (y * y).sum().backward();
  return {y.detach(), x.grad(), w.grad(), b.grad()};
}
const Case kCases[] = {
    {{2, 3, 9, 8}, {4, 3, 3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {{2, 3, 9, 8}, {4, 3, 3, 2}, {2, 3}, {1, 0}, {1, 1}},
    {{2, 4, 9, 11}, {6, 2, 3, 3}, {2, 1}, {2, 1}, {1, 2}, 2},
    {{1, 4, 7, 7}, {8, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, 4},  // of each channel
    {{3, 5, 4, 4}, {2, 5, 1, 1}, {2, 2}, {0, 0}, {1, 1}},
    {{2, 3, 10}, {4, 3, 3}, {2}, {1}, {1}},
    {{1, 2, 5, 6, 4}, {3, 2, 2, 3, 2}, {1, 2, 1}, {0, 1, 1}, {1, 1, 1}},
    {{2, 4, 5, 4}, {4, 3, 3, 3}, {2, 2}, {1, 1}, {1, 1}, 1, true, {1, 0}},
    {{2, 4, 5}, {4, 3, 3}, {2}, {0}, {2}, 2, true, {1}},
};

TEST(Convolutions, ResultsAndGradients) {
  for (const Case& c : kCases)
    for (bool compiled : {false, true}) {
      Counted calls("cudnnBackendExecute"), by_weight("by weight"), forward("forward"), by_image("by image");
      std::vector<Tensor> got = run(c, Device("emu"), kFloat32, compiled), want = run(c, kCPU, kFloat32, compiled);
      for (size_t i = 0; i < want.size(); ++i) {
        SCOPED_TRACE(i);
        expect_close(got[i], want[i]);
      }
      EXPECT_EQ(calls(), 3);
      EXPECT_EQ(by_weight(), 1);
      EXPECT_EQ(forward(), 1);
      EXPECT_EQ(by_image(), 1);
    }
}

TEST(Convolutions, ReducedFloats) {
  const Case& few = kCases[1];  // channels: of known sizes, steps become channels
  const Case wide{{2, 3, 9, 8}, {4, 3, 7, 7}, {2, 2}, {3, 3}, {1, 1}},
      short_end{{2, 1, 8, 9}, {3, 1, 3, 3}, {2, 2}, {0, 0}, {1, 1}};
  for (DType dtype : {kBFloat16, kFloat16})
    for (const Case* c : {&few, &wide, &short_end})
      for (bool compiled : {false, true}) {
        auto f = [c](const Tensor& x, const Tensor& w, const Tensor& b) {
          return conv2d(x, w, b, c->stride, c->padding);
        };
        auto of = [&](Device device, DType t) {
          manual_seed(3);
          Tensor x = randn(c->image).to(dtype).to(t).to(device), w = randn(c->weight).to(dtype).to(t).to(device),
                 b = randn({c->weight[0]}).to(dtype).to(t).to(device);
          w.requires_grad_();
          Tensor y = compiled ? compile(f)(x, w, b) : f(x, w, b);
          y.backward(ones_like(y));
          return std::vector<Tensor>{y.detach(), w.grad()};
        };
        Counted forward("forward"), by_weight("by weight");
        std::vector<Tensor> got = of(Device("emu"), dtype), want = of(kCPU, kFloat32);
        for (size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i].to(dtype));
        EXPECT_EQ(forward(), 1);
        EXPECT_EQ(by_weight(), 1);
      }
}

// Nothing for the library, or nothing to sum up.
TEST(Convolutions, SmallAndEmpty) {
  for (std::vector<int64_t> image : {std::vector<int64_t>{0, 3, 5, 5}, {1, 0, 5, 5}, {1, 3, 3, 3}}) {
    Case c{image, {4, image[1], 3, 3}, {1, 1}, {0, 0}, {1, 1}};
    for (bool compiled : {false, true}) {
      std::vector<Tensor> got = run(c, Device("emu"), kFloat32, compiled), want = run(c, kCPU, kFloat32, compiled);
      for (size_t i = 0; i < want.size(); ++i) expect_close(got[i], want[i]);
    }
  }
  // Of float64, and with more zeros on one side: generated loops.
  Counted calls("cudnnBackendExecute");
  Tensor x = randn({2, 3, 6, 6}), w = randn({4, 3, 2, 2});
  auto same = [](const Tensor& a, const Tensor& b) { return conv2d(a, b, {}, {1}, "same"); };
  expect_close(same(x.to(Device("emu")), w.to(Device("emu"))), same(x, w));
  expect_close(conv2d(x.to(kFloat64).to(Device("emu")), w.to(kFloat64).to(Device("emu"))), conv2d(x, w).to(kFloat64));
  EXPECT_EQ(calls(), 0);
}

// Operands of float32 are rounded to TF32 where the user allows it, and only there.
TEST(Convolutions, Float32IsExactUnlessAllowed) {
  Tensor x = randn({2, 3, 6, 6}).to(Device("emu")), w = randn({4, 3, 3, 3}).to(Device("emu"));
  Counted rounding("rounding engine"), calls("cudnnBackendExecute");
  conv2d(x, w);
  EXPECT_EQ(rounding(), 0);
  set_float32_matmul_precision("high");
  conv2d(x, w);
  set_float32_matmul_precision("highest");
  EXPECT_EQ(rounding(), 1);
  conv2d(x, w);
  EXPECT_EQ(rounding(), 1);
  EXPECT_EQ(calls(), 3);
}

TEST(Convolutions, PlansAreKept) {
  Tensor x = randn({2, 3, 12, 6}).to(Device("emu")), w = randn({4, 3, 3, 3}).to(Device("emu"));
  conv2d(x, w);
  Counted plans("plan"), calls("cudnnBackendExecute");
  for (int i = 0; i < 3; ++i) conv2d(x, w);
  EXPECT_EQ(plans(), 0);
  EXPECT_EQ(calls(), 3);
  conv2d(x.slice(0, 0, 1), w);  // another size
  EXPECT_GT(plans(), 0);
}

TEST(Convolutions, WhatTheLibraryRefuses) {
  fakes::Control& fake = test::fake_cudnn();
  Tensor x = randn({2, 3, 5, 13}), w = randn({4, 3, 3, 3});
  auto on_emu = [&] { return conv2d(x.to(Device("emu")), w.to(Device("emu"))); };
  // The first plan does not work here, the next one does.
  set_float32_matmul_precision("high");
  Counted rounding("rounding engine");
  fake.fail("plan", 1, 3000);
  expect_close(on_emu(), conv2d(x, w));
  EXPECT_EQ(rounding(), 0);
  set_float32_matmul_precision("highest");
  // None works.
  x = randn({2, 3, 5, 17});
  fake.fail("cudnnBackendFinalize", 6, 3000);  // three tensors, how, operation, graph
  EXPECT_THROW(on_emu(), Error);
  expect_close(on_emu(), conv2d(x, w));
  fake.fail("cudnnBackendExecute", 1, 5000);
  EXPECT_THROW(on_emu(), Error);
  expect_close(on_emu(), conv2d(x, w));
  // No description is left behind, but those of plans that are kept.
  Counted made("cudnnBackendCreateDescriptor"), gone("cudnnBackendDestroyDescriptor");
  for (int i = 0; i < 4; ++i) on_emu();
  EXPECT_EQ(made(), gone());
}

// What stands between two convolutions keeps their order: nothing is transposed but what comes in and goes out.
TEST(Convolutions, ANetworkKeepsTheOrder) {
  auto network = [] {
    manual_seed(4);
    auto conv = [](int64_t in, int64_t out, int64_t stride) {
      return nn::Conv2d(nn::Conv2dOptions(in, out, 3).stride(stride).padding(1).bias(false));
    };
    return nn::Sequential(conv(3, 8, 2), nn::BatchNorm2d(8), nn::ReLU(),
                          nn::MaxPool2d(nn::MaxPool2dOptions(3).stride(2).padding(1)), conv(8, 16, 1),
                          nn::BatchNorm2d(16), nn::ReLU(), nn::AdaptiveAvgPool2d(nn::AdaptiveAvgPool2dOptions(1)),
                          nn::Flatten(), nn::Linear(16, 5));
  };
  auto losses = [&](Device device, bool autocast) {
    nn::Sequential model = network();
    manual_seed(5);
    Tensor x = randn({4, 3, 16, 20}).to(device), target = randint(5, {4}, kInt64).to(device);
    model->to(device);
    auto step = compile(
        [=]() mutable {
          model->zero_grad();
          Tensor loss;
          {
            AutocastMode mode(device.type(), kBFloat16, autocast);
            loss = nn::functional::cross_entropy(model(x).to(kFloat32), target);
          }
          loss.backward();
          NoGradGuard no_grad;
          for (Tensor& p : model->parameters()) p.sub_(p.grad() * 0.1);
          return loss.detach();
        },
        {.mode = autocast ? "max-autotune" : "default"});
    std::vector<double> out;
    for (int i = 0; i < 4; ++i) out.push_back(step().item<double>());
    return out;
  };
  for (bool autocast : {false, true}) {
    Counted by_image("by image"), calls("cudnnBackendExecute");
    std::vector<double> cpu = losses(kCPU, false), emu = losses(Device("emu"), autocast);
    for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(emu[i], cpu[i], (autocast ? 2e-2 : 1e-4) * cpu[i]) << i;
    if (autocast) continue;
    EXPECT_EQ(by_image(), 4);  // the images want no gradient
    EXPECT_EQ(calls(), 4 * 5);
  }
}

}  // namespace
}  // namespace brasa
