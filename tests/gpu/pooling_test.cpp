#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include <cmath>
#include <limits>

#include "gpu/on_device.h"
#include "support/str.h"

// Gradients of max-pooling against a loop over windows, eager and compiled: on the CPU, an emulated GPU, and a GPU where there is one.
namespace brasa {
namespace {

struct Window {
  int64_t kernel, stride, padding, dilation;
  bool ceil = false;
};

// Each window's gradient goes to its first greatest element, NaN before all.
Tensor expected(const Tensor& x, const Tensor& g, const Window& w) {
  int64_t rows = x.size(1), columns = x.size(2);
  Tensor out = zeros({x.size(0), rows, columns});
  auto from = x.contiguous(), ct = g.contiguous();
  const float *p = from.data_ptr<float>(), *q = ct.data_ptr<float>();
  float* r = out.data_ptr<float>();
  for (int64_t c = 0; c < x.size(0); ++c)
    for (int64_t i = 0; i < g.size(1); ++i)
      for (int64_t j = 0; j < g.size(2); ++j) {
        int64_t best = -1;
        for (int64_t a = 0; a < w.kernel; ++a)
          for (int64_t b = 0; b < w.kernel; ++b) {
            int64_t y = i * w.stride - w.padding + a * w.dilation, z = j * w.stride - w.padding + b * w.dilation;
            if (y < 0 || z < 0 || y >= rows || z >= columns) continue;
            int64_t at = (c * rows + y) * columns + z;
            if (best < 0 || p[at] > p[best] || (std::isnan(p[at]) && !std::isnan(p[best]))) best = at;
          }
        r[best] += q[(c * g.size(1) + i) * g.size(2) + j];
      }
  return out;
}

class Pooling : public OnDevice {};

TEST_P(Pooling, GradientOfMaxima) {
  for (const Window& w :
       {Window{2, 2, 0, 1}, {3, 2, 1, 1}, {3, 1, 1, 1}, {2, 3, 0, 1}, {3, 2, 1, 2}, {3, 2, 1, 1, true}}) {
    auto pooled = [=](const Tensor& x) {
      return max_pool2d(x, {w.kernel, w.kernel}, {w.stride, w.stride}, {w.padding, w.padding}, {w.dilation, w.dilation},
                        w.ceil);
    };
    for (int64_t size : {9, 12}) {
      Tensor x = randint(6, {3, size, size + 2}, kFloat32);  // with ties
      x[0][4][5] = std::numeric_limits<float>::quiet_NaN();
      Tensor g = randn(pooled(x).sizes());
      auto gradient = [&](const Tensor& leaf, const Tensor& ct) {
        Tensor y = leaf.detach().requires_grad_();
        return autograd::grad({pooled(y)}, {y}, {ct})[0];
      };
      Tensor want = expected(x, g, w);
      for (bool compiled : {false, true}) {
        Tensor a = x.to(device_), b = g.to(device_), got = compiled ? compile(gradient)(a, b) : gradient(a, b);
        EXPECT_TRUE(allclose(got.cpu(), want, 1e-6, 1e-6)) << str(w.kernel, w.stride, w.padding, w.dilation, size);
      }
    }
  }
}

// Of so many elements that those of the same windows are one thread's, in both memory formats.
TEST_P(Pooling, ElementsOfTheSameWindows) {
  Window w{3, 2, 1, 1};
  auto pooled = [](const Tensor& x) { return max_pool2d(x, {3, 3}, {2, 2}, {1, 1}); };
  auto gradient = compile([=](const Tensor& x, const Tensor& g) {
    Tensor y = x.detach().requires_grad_();
    return autograd::grad({pooled(y)}, {y}, {g})[0];
  });
  for (int64_t columns : {96, 100}) {
    Tensor x = randint(6, {16, 32, 96, columns}, kFloat32), g = randint(9, pooled(x).sizes(), kFloat32);
    Tensor want = expected(x.flatten(0, 1), g.flatten(0, 1), w).reshape(x.sizes());
    for (DType dtype : {kFloat32, kBFloat16})
      for (MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
        auto there = [&](const Tensor& t) { return t.to(dtype).to(device_).contiguous(format); };
        EXPECT_TRUE(gradient(there(x), there(g)).cpu().to(kFloat32).equal(want)) << str(columns, " ", name(dtype));
      }
  }
}

// What a pair's place is read by lies in a row of two elements, which one thread has.
TEST_P(Pooling, PairsInOneDimension) {
  for (int64_t length : {4, 6, 64}) {
    auto loss = compile([](const Tensor& x) { return max_pool1d(x, 2, 2).square().sum(); });
    Tensor x = randperm(12 * length, kFloat32).reshape({6, 2, length}).to(device_).set_requires_grad(true);
    Tensor pairs = x.detach().reshape({6, 2, length / 2, 2});
    loss(x).backward();
    Tensor greatest = (pairs * 2).masked_fill(pairs != pairs.amax({3}, true), 0);
    EXPECT_TRUE(x.grad().equal(greatest.reshape(x.sizes()))) << length;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Pooling, testing::Values("cpu", "emu", "cuda"));

}  // namespace
}  // namespace brasa
