#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/serialize.h>

#include "error_of.h"

// Optimizers that LibTorch saved in the middle of a training go on as there (tests/pytorch/optimizers.cpp).
namespace brasa::optim {
namespace {

const std::string kFiles = BRASA_TEST_DATA "/checkpoints/libtorch/";

template <class Opt, class Options>
void expect_goes_on(const std::string& name, Options options) {
  std::vector<Tensor> weights;
  load(weights, kFiles + name + ".weights.pt");
  nn::Sequential net(nn::Linear(3, 2), nn::Tanh(), nn::Linear(2, 2));
  std::vector<Tensor> parameters = net->parameters();
  ASSERT_EQ(weights.size(), 2 * parameters.size());
  {
    NoGradGuard no_grad;
    for (size_t i = 0; i < parameters.size(); ++i) parameters[i].copy_(weights[i]);
  }
  Opt optimizer(parameters, options);  // other options than the file's
  load(optimizer, kFiles + name + ".optimizer.pt");
  Tensor x = arange(6).to(kFloat32).reshape({2, 3}) / 6;
  for (int i = 0; i < 2; ++i)
    optimizer.step([&] {
      optimizer.zero_grad();
      Tensor loss = net->forward(x).pow(2).sum();
      loss.backward();
      return loss;
    });
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor expected = weights[parameters.size() + i];
    EXPECT_TRUE(allclose(parameters[i], expected, 1e-5, 1e-6)) << parameters[i] << expected;
    EXPECT_FALSE(allclose(parameters[i], weights[i], 1e-5, 1e-6));
  }
}

TEST(LibTorchsOptimizers, Adam) { expect_goes_on<Adam>("adam", AdamOptions(0.5)); }
TEST(LibTorchsOptimizers, AdamW) { expect_goes_on<AdamW>("adamw", AdamWOptions(0.5)); }
TEST(LibTorchsOptimizers, SGD) { expect_goes_on<SGD>("sgd", SGDOptions(0.5)); }
TEST(LibTorchsOptimizers, RMSprop) { expect_goes_on<RMSprop>("rmsprop", RMSpropOptions(0.5)); }
TEST(LibTorchsOptimizers, Adagrad) { expect_goes_on<Adagrad>("adagrad", AdagradOptions(0.5)); }
TEST(LibTorchsOptimizers, LBFGS) { expect_goes_on<LBFGS>("lbfgs", LBFGSOptions(0.5)); }

TEST(LibTorchsOptimizers, OptionsAreTheFiles) {
  Adam optimizer({ones({1}), ones({1}), ones({1}), ones({1})}, AdamOptions(5));
  load(optimizer, kFiles + "adam.optimizer.pt");
  const auto& o = static_cast<const AdamOptions&>(optimizer.param_groups()[0].options());
  EXPECT_EQ(o.lr(), 0.01);
  EXPECT_EQ(o.betas(), std::make_tuple(0.8, 0.95));
  EXPECT_EQ(o.weight_decay(), 0.1);
  EXPECT_TRUE(o.amsgrad());
  const auto& state = static_cast<const AdamParamState&>(*optimizer.state().begin()->second);
  EXPECT_EQ(state.step(), 3);
  EXPECT_EQ(state.steps().scalar_type(), kFloat32);
}

TEST(LibTorchsOptimizers, AnotherNumberOfParametersIsAnError) {
  Adam optimizer({ones({1})});
  std::string file = kFiles + "adam.optimizer.pt";
  EXPECT_EQ(error_of([&] { load(optimizer, file); }),
            file + ": parameter group 0 has 4 parameters, the optimizer's has 1");
}

}  // namespace
}  // namespace brasa::optim
