#include <brasa/autocast.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

#include <array>

#include "fake.h"

// Products by cuBLASLt's calls: a fake one computes them on the emulated GPU.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

struct Counted : test::Counted {
  explicit Counted(const char* function) : test::Counted(test::fake_cublaslt(), function) {}
};

struct Layer {
  Tensor x, weight, bias;
  Tensor on(Device device, bool compiled = true) const {
    auto f = [](const Tensor& a, const Tensor& w, const Tensor& b) { return linear(a, w, b); };
    Tensor a = x.to(device), w = weight.to(device), b = bias.to(device);
    return (compiled ? compile(f)(a, w, b) : f(a, w, b)).cpu();
  }
};
Layer layer(DType dtype, std::vector<int64_t> rows, int64_t in, int64_t out) {
  rows.push_back(in);
  return {randn(rows).to(dtype), randn({out, in}).to(dtype), randn({out}).to(dtype)};
}
void expect_close(const Tensor& a, const Tensor& b) {
  double tolerance = a.scalar_type() == kFloat32 ? 1e-5 : a.scalar_type() == kFloat16 ? 2e-3 : 1.6e-2;
  EXPECT_TRUE(allclose(a.to(kFloat64), b.to(kFloat64), tolerance, tolerance))
      << (a.to(kFloat64) - b.to(kFloat64)).abs().max();
}

TEST(Products, ALinearLayerIsOneCall) {
  for (DType dtype : {kFloat32, kBFloat16, kFloat16})
    for (std::vector<int64_t> rows : {std::vector<int64_t>{5}, {2, 3}, {2, 3, 7}})
      for (bool compiled : {false, true}) {
        Layer l = layer(dtype, rows, 24, 40);
        Counted products("cublasLtMatmul"), with_bias("bias");
        expect_close(l.on(Device("emu"), compiled), l.on(kCPU));
        EXPECT_EQ(products(), 1);
        EXPECT_EQ(with_bias(), 1);
      }
}

// Where sums are short and tiles are many, small ones come first.
TEST(Products, ShortSumsHaveSmallTiles) {
  struct Case {
    DType dtype;
    int64_t rows, inner, columns;
    int small;
  };
  for (Case c : {Case{kBFloat16, 512, 16, 256, 1},
                 {kFloat16, 100, 8, 1280, 1},
                 {kBFloat16, 200, 16, 640, 1},
                 {kBFloat16, 200, 16, 648, 0},
                 {kBFloat16, 256, 16, 256, 0},
                 {kBFloat16, 512, 2056, 256, 0},
                 {kFloat32, 512, 16, 256, 0}}) {
    Layer l = layer(c.dtype, {c.rows}, c.inner, c.columns);
    Counted small("small tiles");
    expect_close(l.on(Device("emu")), l.on(kCPU));
    EXPECT_EQ(small(), c.small) << c.rows << " " << c.inner << " " << c.columns;
  }
}

TEST(Products, OtherSumsAreNotOfTheCall) {
  Layer l = layer(kFloat32, {6}, 24, 40);
  Counted with_bias("bias");
  // A bias that is wider than the result, and one of each row.
  auto wide = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return (x.to(kFloat32).mm(w.to(kFloat32).t()) + b).to(kBFloat16);
  };
  for (Tensor b : {randn({40}), randn({6, 1}).to(kBFloat16), randn({6, 40}).to(kBFloat16)}) {
    Tensor x = l.x.to(kBFloat16), w = l.weight.to(kBFloat16);
    Device emu("emu");
    expect_close(compile(wide)(x.to(emu), w.to(emu), b.to(emu)).cpu(), wide(x, w, b));
  }
  EXPECT_EQ(with_bias(), 0);
}

// A product that somebody else reads without its bias goes to memory as it is.
TEST(Products, TheSumAloneIsWanted) {
  auto f = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    Tensor p = x.to(kFloat32).mm(w.to(kFloat32).t());
    return std::vector<Tensor>{(p + b.to(kFloat32)).to(kBFloat16), p};
  };
  Layer l = layer(kBFloat16, {6}, 24, 40);
  Device emu("emu");
  Counted with_bias("bias");
  std::vector<Tensor> got = compile(f)(l.x.to(emu), l.weight.to(emu), l.bias.to(emu)), want = f(l.x, l.weight, l.bias);
  for (size_t i = 0; i < 2; ++i) expect_close(got[i].cpu(), want[i]);
  EXPECT_EQ(with_bias(), 0);
}

// Gradients by the weights of equal layers, for which an optimizer's updates alone wait, are one call with max-autotune.
TEST(Products, GradientsOfEqualLayersAreOneCall) {
  constexpr int kLayers = 5;
  auto train = [&](Device device, const char* mode, int& calls) {
    manual_seed(4);
    nn::Sequential net;
    for (int i = 0; i < kLayers; ++i) net->push_back(nn::Linear(16, 16));
    net->to(device);
    Tensor x = randn({32, 16}).to(device), target = randn({32, 16}).to(device);
    auto step = [&] {
      AutocastMode autocast(device.type(), kBFloat16);
      Tensor y = x;
      for (size_t i = 0; i < net->size(); ++i) y = (net[i]->as<nn::Linear>()->forward(y) + y).tanh();
      Tensor loss = (y - target).to(kFloat32).square().mean();
      std::vector<Tensor> p = net->parameters(), gradients = autograd::grad({loss}, p);
      NoGradGuard guard;
      for (size_t i = 0; i < p.size(); ++i) p[i].sub_(gradients[i], 0.3);
      return loss.detach();
    };
    auto compiled = mode ? compile(step, {.mode = mode}) : compile(step, {.backend = "eager"});
    for (int i = 0; i < 4; ++i) compiled();
    Counted products("cublasLtMatmul");
    compiled();
    calls = products();
    std::vector<Tensor> out;
    for (const Tensor& t : net->parameters()) out.push_back(t.detach().cpu());
    return out;
  };
  int calls = 0, alone = 0, joined = 0;
  std::vector<Tensor> want = train(kCPU, nullptr, calls), one = train(Device("emu"), "default", alone),
                      got = train(Device("emu"), "max-autotune-no-cudagraphs", joined);
  EXPECT_EQ(alone, 3 * kLayers - 1);
  EXPECT_EQ(joined, alone - (kLayers - 1));
  for (size_t i = 0; i < want.size(); ++i) {
    // What bfloat16 rounds in five layers and five steps.
    EXPECT_TRUE(allclose(got[i], want[i], 2e-2, 2e-2)) << i;
    EXPECT_TRUE(allclose(got[i], one[i], 2e-3, 2e-3)) << i;
  }
}

// Biases that lie in steps, results whose rows get longer, empty sums.
TEST(Products, AnyLayout) {
  Device emu("emu");
  Layer l = layer(kBFloat16, {6}, 24, 40);
  l.bias = randn({80}).to(kBFloat16).slice(0, 0, 80, 2);
  expect_close(l.on(emu), l.on(kCPU));
  l.bias = randn({41}).to(kBFloat16).slice(0, 1);
  expect_close(l.on(emu), l.on(kCPU));
  Layer odd = layer(kBFloat16, {2, 9}, 37, 19);
  expect_close(odd.on(emu), odd.on(kCPU));
  for (std::vector<int64_t> rows : {std::vector<int64_t>{1}, {0}, {3}})
    for (int64_t in : {0, 1, 5})
      for (int64_t out : {1, 2}) {
        Layer small = layer(kBFloat16, rows, in, out);
        expect_close(small.on(emu), small.on(kCPU));
        expect_close(small.on(emu, false), small.on(kCPU));
      }
  auto next = [](const Tensor& x, const Tensor& w, const Tensor& b) { return linear(x, w, b).mm(w); };
  Tensor x = randn({6, 24}).to(kBFloat16), w = randn({19, 24}).to(kBFloat16), b = randn({19}).to(kBFloat16);
  expect_close(compile(next)(x.to(emu), w.to(emu), b.to(emu)).cpu(), next(x, w, b));
}

// The library knows no way to add a bias: it is in the result before the product is added.
// As fast as memory gives the matrix, and together with what follows.
TEST(Products, OneRowIsASumOfOurOwn) {
  for (DType dtype : {kBFloat16, kFloat32}) {
    Layer l = layer(dtype, {1}, 24, 40);
    auto f = [](const Tensor& x, const Tensor& w, const Tensor& b) { return gelu(linear(x, w, b)); };
    Counted products("cublasLtMatmul");
    Device emu("emu");
    expect_close(compile(f)(l.x.to(emu), l.weight.to(emu), l.bias.to(emu)).cpu(), f(l.x, l.weight, l.bias));
    EXPECT_EQ(products(), 0);
  }
}

TEST(Products, WithoutAWayForTheBias) {
  for (int64_t rows : {2, 3, 8, 13}) {
    Layer l = layer(kBFloat16, {rows}, 24, 48 + 8 * rows);
    Counted products("cublasLtMatmul"), with_bias("bias");
    test::fake_cublaslt().fail("cublasLtMatmulAlgoGetHeuristic", 1, 15);
    expect_close(l.on(Device("emu")), l.on(kCPU));
    expect_close(l.on(Device("emu")), l.on(kCPU));
    EXPECT_EQ(products(), 2);
    EXPECT_EQ(with_bias(), 0);
    test::fake_cublaslt().fail("cublasLtMatmulAlgoGetHeuristic", 0, 0);
  }
}

TEST(Products, WhatTheLibraryRefusesIsAnError) {
  Layer l = layer(kFloat32, {7}, 24, 136);
  test::fake_cublaslt().fail("cublasLtMatmulAlgoGetHeuristic", 1, 15);
  try {
    l.x.to(Device("emu")).mm(l.weight.to(Device("emu")).t()).cpu();
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("cuBLASLt knows no way to multiply 7 x 24 by 24 x 136"), std::string::npos)
        << e.what();
  }
  expect_close(l.on(Device("emu")), l.on(kCPU));
  test::fake_cublaslt().fail("cublasLtMatmul", 1, 14);
  EXPECT_THROW(l.on(Device("emu")), Error);
}

// Operands of TF32 that do not lie along the sum are turned: both, one, none.
TEST(Products, TurnedOperands) {
  set_float32_matmul_precision("high");
  Device emu("emu");
  auto f = [](const Tensor& a, const Tensor& b) { return a.mm(b); };
  for (auto [rows, inner, columns] : {std::array<int64_t, 3>{512, 256, 516}, {516, 260, 512}, {2048, 256, 256}})
    for (bool turned : {true, false}) {
      Tensor a = randn({inner, rows}), b = randn({inner, columns});
      auto product = [&](Device d) {
        return compile(f)(turned ? a.to(d).t() : a.t().contiguous().to(d), b.to(d)).cpu();
      };
      EXPECT_TRUE(allclose(product(emu), product(kCPU), 1e-2, 1e-1));
    }
  set_float32_matmul_precision("highest");
}

// With gradients, under autocast, measured: the result of two ways is the same.
TEST(Products, ATrainingStepUnderAutocast) {
  auto losses = [](Device device) {
    manual_seed(3);
    nn::Sequential model(nn::Linear(24, 48), nn::GELU(), nn::Linear(48, 8));
    Tensor x = randn({16, 24}), target = randn({16, 8});
    model->to(device);
    x = x.to(device), target = target.to(device);
    auto step = compile(
        [=]() mutable {
          model->zero_grad();
          Tensor loss;
          {
            AutocastMode autocast(device.type(), kBFloat16, true);
            loss = nn::functional::mse_loss(model(x), target);
          }
          loss.backward();
          NoGradGuard no_grad;
          for (Tensor& p : model->parameters()) p.sub_(p.grad() * 0.1);
          return loss.detach();
        },
        {.mode = "max-autotune"});
    std::vector<double> out;
    for (int i = 0; i < 4; ++i) out.push_back(step().item<double>());
    return out;
  };
  Counted with_bias("bias");
  std::vector<double> cpu = losses(kCPU), emu = losses(Device("emu"));
  EXPECT_GT(with_bias(), 0);
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(emu[i], cpu[i], 1e-2 * cpu[i]) << i;
}

}  // namespace
}  // namespace brasa
