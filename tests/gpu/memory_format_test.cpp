#include <gtest/gtest.h>

#include <functional>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/nn.h>

#include "gpu/on_device.h"
#include "support/str.h"

// Results of images that have their channels last lie so, and gradients as their operands do: the same numbers as of row-major ones.
namespace brasa {
namespace {

class MemoryFormats : public OnDevice {};

using Function = std::function<std::vector<Tensor>(const Tensor&, const Tensor&)>;

struct Case {
  const char* name;
  Function of;                // of an image and of weights
  bool compiled_too = false;  // which takes longer
};

const std::vector<int64_t> kOne = {1, 1}, kTwo = {2, 2};

Tensor normalised(const Tensor& x, bool training) {
  Tensor one = ones({x.size(1)}, x.options());
  return batch_norm(x, one * 2, one, one * 0, one, training, 0.1, 1e-5, false);
}

const Case kCases[] = {
    {"conv2d", [](auto x, auto w) { return std::vector{conv2d(x, w, {}, kOne, kOne)}; }, true},
    {"conv2d of groups",
     [](auto x, auto w) { return std::vector{conv2d(x, w.narrow(1, 0, 3), {}, kTwo, kOne, kOne, 2)}; }},
    {"conv_transpose2d", [](auto x, auto w) { return std::vector{conv_transpose2d(x, w.transpose(0, 1), {}, kTwo)}; }},
    {"batch_norm", [](auto x, auto) { return std::vector{normalised(x, true), normalised(x, false)}; }, true},
    {"max_pool2d", [](auto x, auto) { return std::vector{max_pool2d(x, {3, 3}, kTwo, kOne)}; }},
    {"avg_pool2d", [](auto x, auto) { return std::vector{avg_pool2d(x, kTwo), adaptive_avg_pool2d(x, {2, 3})}; }},
    {"pads",
     [](auto x, auto) { return std::vector{constant_pad_nd(x, {1, 2, 0, 1}), reflection_pad2d(x, {1, 1, 2, 1})}; }},
    {"upsampled", [](auto x, auto) { return std::vector{upsample_nearest2d(x, {9, 14})}; }},
    {"moved",
     [](auto x, auto) {
       return std::vector{cat({x, x * 2}, 1),    cat({x, x}, 0),
                          x.flip({2}),           roll(x, {1, 2}, {2, 3}),
                          cat(x.chunk(2, 1), 1), pixel_unshuffle(constant_pad_nd(x, {0, 0, 0, 1}), 2)};
     },
     true},
    {"ordered and dropped",
     [](auto x, auto) {
       return std::vector{std::get<0>(x.sort(1)), glu(x, 1), group_norm(x, 2), dropout(x, 0.5, false)};
     }},
    {"parts", [](auto x, auto w) { return std::vector{x.narrow(1, 1, 3).clone(), conv2d(x.narrow(2, 1, 5), w)}; }},
    {"by element", [](auto x, auto) { return std::vector{relu(x * 2 + 1), x.to(kFloat64)}; }},
    {"several",
     [](auto x, auto w) {
       Tensor y = relu(normalised(conv2d(x, w, {}, kOne, kOne), true));
       return std::vector{max_pool2d(y, {3, 3}, kTwo, kOne) + 1};
     },
     true},
};

TEST_P(MemoryFormats, AreKept) {
  manual_seed(3);
  Tensor image = randn({3, 6, 7, 8}), weights = randn({4, 6, 3, 3});
  for (const Case& c : kCases)
    for (bool compiled : {false, true}) {
      if (compiled && !c.compiled_too) continue;
      auto run = [&](MemoryFormat format) {
        Tensor x = image.clone().to(device_).contiguous(format), w = weights.clone().to(device_).contiguous(format);
        x.requires_grad_(true), w.requires_grad_(true);
        auto f = [&](const Tensor& a, const Tensor& b) { return c.of(a, b); };
        std::vector<Tensor> out = compiled ? compile(f)(x, w) : f(x, w);
        Tensor total = zeros({}, TensorOptions().device(device_).dtype(kFloat64));
        for (const Tensor& y : out) total = total + (y * y).sum().to(kFloat64);
        total.backward();
        for (Tensor& y : out) y = y.detach();
        for (const Tensor& t : {x, w})
          if (t.grad().defined()) out.push_back(t.grad());
        return out;
      };
      std::vector<Tensor> want = run(MemoryFormat::Contiguous), got = run(MemoryFormat::ChannelsLast);
      ASSERT_EQ(want.size(), got.size());
      for (size_t i = 0; i < want.size(); ++i) {
        std::string which = str(c.name, compiled ? " compiled " : " ", i);
        EXPECT_TRUE(allclose(got[i].cpu(), want[i].cpu(), 1e-3, 1e-3)) << which;
        EXPECT_EQ(want[i].suggest_memory_format(), MemoryFormat::Contiguous) << which;
        EXPECT_EQ(got[i].suggest_memory_format(), MemoryFormat::ChannelsLast) << which;
      }
    }
}

// Of volumes, of images with one channel, which lie in both ways, and of none.
TEST_P(MemoryFormats, OfOtherSizes) {
  for (std::vector<int64_t> shape :
       {std::vector<int64_t>{2, 3, 4, 5, 4}, {2, 1, 4, 4}, {2, 3, 1, 1}, {0, 3, 4, 4}, {1, 3, 1, 4}}) {
    bool volume = shape.size() == 5;
    Tensor x = randn(shape).to(device_);
    Tensor last = x.contiguous(volume ? MemoryFormat::ChannelsLast3d : MemoryFormat::ChannelsLast);
    Tensor want = normalised(x, false), got = normalised(last, false);
    EXPECT_TRUE(allclose(got.cpu(), want.cpu(), 1e-5, 1e-6)) << str(shape);
    EXPECT_EQ(got.suggest_memory_format(), last.suggest_memory_format()) << str(shape);
  }
}

// Derivatives of derivatives, which go through the statistics that a batch norm gives.
TEST_P(MemoryFormats, TwiceDerived) {
  auto second = [&](MemoryFormat format, Device device) {
    manual_seed(5);
    Tensor x = randn({3, 4, 3, 5}).to(device).contiguous(format);
    x.requires_grad_(true);
    Tensor y = normalised(x * x, true);
    Tensor first = autograd::grad({(y * y * y).sum()}, {x}, {}, true, true)[0];
    return autograd::grad({(first * first).sum()}, {x})[0].cpu();
  };
  Tensor want = second(MemoryFormat::Contiguous, kCPU);
  for (MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast})
    EXPECT_TRUE(allclose(second(format, device_), want, 1e-3, 1e-2));
}

INSTANTIATE_TEST_SUITE_P(Devices, MemoryFormats, testing::Values("cpu", "emu", "cuda"));

}  // namespace
}  // namespace brasa
