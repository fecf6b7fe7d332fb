#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include "situations.h"

namespace brasa {
namespace {

// A step whose graphs are all used up runs operator by operator; the gradients of what was broadcast are then summed, too.
TEST(BeyondTheRecompileLimit, GradientsOfBroadcastParameters) {
  auto losses = [](bool compiled) {
    manual_seed(0);
    Tensor bias = randn({1, 3}).set_requires_grad(true), weight = randn({3}).set_requires_grad(true), x = randn({8, 3});
    double factor = 1;
    auto step = [&](const Tensor& in) {
      bias.mutable_grad().reset();
      weight.mutable_grad().reset();
      Tensor loss = (in * weight + bias).square().sum() * factor;
      loss.backward();
      NoGradGuard no_grad;
      bias.sub_(bias.grad(), 0.01);
      weight.sub_(weight.grad(), 0.01);
      return loss.detach();
    };
    auto fast = compile(step, {.fullgraph = true, .dynamic = false, .recompile_limit = 1});
    std::vector<double> out;
    for (int i = 0; i < 4; ++i, ++factor) out.push_back((compiled ? fast(x) : step(x)).item<double>());
    return out;
  };
  std::vector<double> expected = losses(false), got = losses(true);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-4 * expected[i]) << i;
}

TEST(BeyondTheRecompileLimit, SecondDerivativesOfBroadcastOperands) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    Tensor w = numbers({1, 4}).clone().set_requires_grad(true);
    auto f = compile([&](const Tensors& in) -> Tensors {
      Tensor a = in[0] * w, column = a.narrow(1, 0, 1);
      return {a.sin() * column, a / (column.square() + 1)};
    });
    for (int64_t rows : {1, 5, 3}) {
      Tensor x = numbers({rows, 4}).clone().set_requires_grad(true);
      Tensors out = f({x});
      Tensors g = autograd::grad({out[0].sin().sum() + out[1].square().sum()}, {x, w}, {}, true, true);
      (g[0].tanh().square().sum() + g[1].tanh().sum()).backward();
      seen.add({g[0].detach(), g[1].detach(), x.grad(), w.grad()});
    }
  });
}

}  // namespace
}  // namespace brasa
