// Learning rates that are tensors.
#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/error.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/stats.h>

namespace brasa::optim {
namespace {

using Make = std::function<std::unique_ptr<Optimizer>(const std::vector<Tensor>&)>;
const Make kMakes[] = {
    [](auto& p) { return std::make_unique<SGD>(p, SGDOptions(0.5).momentum(0.9).weight_decay(0.1)); },
    [](auto& p) { return std::make_unique<Adam>(p, AdamOptions(0.5)); },
    [](auto& p) { return std::make_unique<AdamW>(p, AdamWOptions(0.5).weight_decay(0.1)); },
    [](auto& p) { return std::make_unique<Adamax>(p, AdamaxOptions(0.5)); },
    [](auto& p) {
      return std::make_unique<NAdam>(p, NAdamOptions(0.5).weight_decay(0.1).decoupled_weight_decay(true));
    },
    [](auto& p) { return std::make_unique<RAdam>(p, RAdamOptions(0.5)); },
    [](auto& p) { return std::make_unique<ASGD>(p, ASGDOptions(0.5).t0(2).lambd(0.1)); },
    [](auto& p) { return std::make_unique<Adafactor>(p, AdafactorOptions(0.5)); },
    [](auto& p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.5).lr_decay(0.1)); },
    [](auto& p) { return std::make_unique<RMSprop>(p, RMSpropOptions(0.5).momentum(0.9)); },
    [](auto& p) { return std::make_unique<Adadelta>(p, AdadeltaOptions(0.5)); },
};

struct Problem {
  explicit Problem(const Make& make) : optimizer(make({weight})) {}
  Tensor step() {
    optimizer->zero_grad();
    Tensor loss = (weight * weight).sum();
    loss.backward();
    optimizer->step();
    return loss.detach();
  }
  OptimizerOptions& options() { return optimizer->param_groups()[0].options(); }
  Tensor weight = tensor({1.0f, -2.0f, 3.0f}).requires_grad_();
  std::unique_ptr<Optimizer> optimizer;
};

TEST(TensorRate, AsTheNumber) {
  for (const Make& make : kMakes) {
    Problem a(make), b(make);
    // ASGD takes its first step with the rate that it begins with.
    a.step();
    b.step();
    for (double lr : {0.1, 0.05, 0.2}) {
      a.options().set_lr(lr);
      b.options().set_lr(scalar_tensor(lr, kFloat64));
      a.step();
      b.step();
      EXPECT_TRUE(allclose(a.weight, b.weight, 1e-6, 1e-7)) << lr;
    }
    // A number counts again.
    a.options().set_lr(0.01);
    b.options().set_lr(0.01);
    EXPECT_EQ(b.options().get_lr(), 0.01);
    a.step();
    b.step();
    EXPECT_TRUE(allclose(a.weight, b.weight, 1e-6, 1e-7));
  }
}

TEST(TensorRate, ANewOneCompilesNothing) {
  for (const Make& make : kMakes) {
    Problem a(make), b(make);
    auto fast = compile(
        [&](const Tensor& lr) {
          b.options().set_lr(lr);
          return b.step();
        },
        {.fullgraph = true});
    int64_t before = 0;
    for (int k = 0; k < 5; ++k) {
      Tensor lr = scalar_tensor(0.1 / (k + 1), kFloat32);
      a.options().set_lr(lr);
      a.step();
      fast(lr);
      if (k == 1) before = stats().compilations;
      EXPECT_TRUE(allclose(a.weight, b.weight, 1e-6, 1e-7)) << k;
    }
    EXPECT_EQ(stats().compilations, before);
  }
}

TEST(TensorRate, Errors) {
  Tensor weight = ones({3}).requires_grad_();
  Adam adam({weight});
  OptimizerOptions& options = adam.param_groups()[0].options();
  EXPECT_THROW(options.set_lr(ones({2})), Error);
  EXPECT_THROW(options.set_lr(Tensor()), Error);
  EXPECT_THROW(options.set_lr(scalar_tensor(1, kInt64)), Error);
  Rprop rprop({weight});
  EXPECT_THROW(rprop.param_groups()[0].options().set_lr(scalar_tensor(0.1)), Error);
  // What is no number was never set as a tensor.
  options.set_lr(std::nan(""));
  weight.sum().backward();
  EXPECT_THROW(adam.step(), Error);
  // From the beginning.
  AdamOptions with_tensor;
  with_tensor.set_lr(scalar_tensor(0.1));
  Adam from_tensor({weight}, with_tensor);
  from_tensor.step();
  EXPECT_NEAR(weight[0].item<float>(), 0.9, 1e-5);
}

}  // namespace
}  // namespace brasa::optim
