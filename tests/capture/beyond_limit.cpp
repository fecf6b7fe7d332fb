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

// A known segment whose results are wanted in another way has no graph, and none may be made: gradients flow all the same.
TEST(BeyondTheRecompileLimit, OtherResultsWhereNothingMayBeCompiled) {
  Tensor w = numbers({3}).clone().set_requires_grad(true), kept;
  bool keep = false;
  auto f = [&](Tensor& memory, const Tensor& x) {
    memory.mul_(2);
    Tensor y = (x * w).sin() * memory;
    if (keep) kept = y;
    return y.exp() + memory;
  };
  auto g = compile(f);
  auto gradients = [&](auto call) {
    Tensor memory = numbers({3}) + 2, x = numbers({3}).clone().set_requires_grad(true), out = call(memory, x).sum();
    if (keep) out = out + kept.square().sum();
    return autograd::grad({out}, {w, x}, {}, true);
  };
  for (bool now : {false, false, true, false, true}) {
    keep = now;
    std::string stance = set_stance(now ? "eager_on_recompile" : "default");
    Tensors got = gradients(g);
    set_stance(stance);
    Tensors expected = gradients(f);
    for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], expected[i]);
  }
}

}  // namespace
}  // namespace brasa
