#include <gtest/gtest.h>

#include <span>
#include <sstream>

#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/pickle.h>
#include <brasa/serialize.h>

#include "error_of.h"

// Optimizers that LibTorch saved in the middle of a training go on as there (tests/pytorch/optimizers.cpp).
namespace brasa::optim {
namespace {

const std::string kFiles = BRASA_TEST_DATA "/checkpoints/libtorch/";

// `again`: from the archive that Brasa writes of the optimizer that it has read.
template <class Opt, class Options>
void expect_goes_on(const std::string& name, Options options, bool again = false) {
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
  std::stringstream archive;
  save(optimizer, archive, serialize::Form::LibTorch);
  Opt other(parameters, options);
  load(other, archive);
  Opt& used = again ? other : optimizer;
  Tensor x = arange(6).to(kFloat32).reshape({2, 3}) / 6;
  for (int i = 0; i < 2; ++i)
    used.step([&] {
      used.zero_grad();
      Tensor loss = net->forward(x).pow(2).sum();
      loss.backward();
      return loss;
    });
  for (size_t i = 0; i < parameters.size(); ++i) {
    Tensor expected = weights[parameters.size() + i];
    EXPECT_TRUE(allclose(parameters[i], expected, 1e-5, 1e-6)) << parameters[i] << expected;
    EXPECT_FALSE(allclose(parameters[i], weights[i], 1e-5, 1e-6));
  }
  if (!again) expect_goes_on<Opt>(name, options, true);
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

// The types of an archive's values, which LibTorch insists on.
TEST(LibTorchsOptimizers, NumbersHaveTheirTypes) {
  Tensor a = ones({2}).requires_grad_(), b = ones({3}).requires_grad_();
  Adam optimizer({OptimizerParamGroup({a}), OptimizerParamGroup({b}, std::make_unique<AdamOptions>(0.25))},
                 AdamOptions(0.5));
  a.sum().backward();
  optimizer.step();
  std::stringstream stream;
  save(optimizer, stream, serialize::Form::LibTorch);
  std::string bytes = stream.str();
  pickle::Value root = pickle::parse(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(root.at("pytorch_version").text(), "1.5.0");
  const pickle::Value &groups = root.at("param_groups"), &second = groups.at("param_groups/1");
  EXPECT_EQ(groups.at("param_groups/size").to_tensor().item<int64_t>(), 2);
  EXPECT_EQ(second.at("params/0").text(), "2");
  EXPECT_EQ(second.at("options").at("lr").to_double(), 0.25);
  EXPECT_EQ(second.at("options").at("betas").items()[1].to_double(), 0.999);
  EXPECT_FALSE(second.at("options").at("amsgrad").to_bool());
  EXPECT_EQ(second.at("options").find("maximize"), nullptr);
  EXPECT_EQ(root.at("state").at("1").at("step").to_int(), 1);
  EXPECT_EQ(root.at("state").find("2"), nullptr);
}

TEST(LibTorchsOptimizers, WhatTheyHaveNotIsAnError) {
  std::stringstream stream;
  SGD up({ones({1})}, SGDOptions(0.1).maximize(true));
  EXPECT_EQ(error_of([&] { save(up, stream, serialize::Form::LibTorch); }),
            "archive: LibTorch's optimizers have no option 'maximize'");
  Adam optimizer({ones({1})});
  optimizer.param_groups()[0].options().set_lr(scalar_tensor(0.1));
  EXPECT_EQ(error_of([&] { save(optimizer, stream, serialize::Form::LibTorch); }),
            "archive: the option 'lr' is a tensor or not a number, which LibTorch's optimizers do not take");
}

template <class Opt>
void expect_same_steps_after_a_save() {
  Tensor a = ones({2}).requires_grad_();
  Opt first({a}), second({a});
  lr_scheduler::ExponentialLR rates(first, 0.5), others(second, 0.5);
  a.pow(2).sum().backward();
  first.step();
  rates.step();
  std::stringstream state, epochs;
  save(first, state, serialize::Form::LibTorch);
  save(rates, epochs);
  load(second, state);
  load(others, epochs);
  EXPECT_EQ(others.last_epoch(), 1);
  EXPECT_EQ(others.get_last_lr(), rates.get_last_lr());
  Tensor start = a.detach().clone();
  first.step();
  Tensor stepped = a.detach().clone();
  {
    NoGradGuard no_grad;
    a.copy_(start);
  }
  second.step();
  EXPECT_TRUE(equal(a.detach(), stepped));
  EXPECT_FALSE(equal(start, stepped));
}

// Which LibTorch has not: the archive's form holds them all the same.
TEST(LibTorchsArchives, HoldOptimizersOfPythonsToo) {
  expect_same_steps_after_a_save<RAdam>();
  expect_same_steps_after_a_save<NAdam>();
  expect_same_steps_after_a_save<Adafactor>();
  expect_same_steps_after_a_save<Adadelta>();
  expect_same_steps_after_a_save<AdamW>();
}

TEST(LibTorchsArchives, ModulesTensorsAndLists) {
  nn::Sequential net(nn::Linear(2, 3), nn::ReLU(), nn::BatchNorm1d(3)),
      other(nn::Linear(2, 3), nn::ReLU(), nn::BatchNorm1d(3));
  std::stringstream stream;
  save(net, stream, serialize::Form::LibTorch);
  std::string bytes = stream.str();
  pickle::Value root = pickle::parse(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(root.at("0").at("weight").to_tensor().requires_grad());
  EXPECT_FALSE(root.at("2").at("running_mean").to_tensor().requires_grad());
  EXPECT_TRUE(root.at("1").pairs().empty());  // which LibTorch asks for
  load(other, stream);
  for (size_t i = 0; i < net->parameters().size(); ++i) EXPECT_TRUE(other->parameters()[i].equal(net->parameters()[i]));

  std::vector<Tensor> list{rand({2}), ones({1}, kInt64)}, found;
  std::stringstream lists;
  save(list, lists, serialize::Form::LibTorch);
  load(found, lists);
  EXPECT_TRUE(found.at(0).equal(list[0]) && found.at(1).equal(list[1]));
  EXPECT_EQ(error_of([&] { save(ones({2}).to_sparse(), lists, serialize::Form::LibTorch); }),
            "archive: '0' is a sparse tensor of float32, for which LibTorch's archives have no form");
}

// A view of nothing lies anywhere, behind the end of its memory too.
TEST(LibTorchsArchives, ViewsOfNothing) {
  Tensor found;
  std::stringstream stream;
  save(rand({4, 0}).narrow(0, 1, 3), stream, serialize::Form::LibTorch);
  load(found, stream);
  EXPECT_EQ(found.sizes(), (std::vector<int64_t>{3, 0}));
}

TEST(LibTorchsOptimizers, AnotherNumberOfParametersIsAnError) {
  Adam optimizer({ones({1})});
  std::string file = kFiles + "adam.optimizer.pt";
  EXPECT_EQ(error_of([&] { load(optimizer, file); }),
            file + ": parameter group 0 has 4 parameters, the optimizer's has 1");
}

}  // namespace
}  // namespace brasa::optim
