#include <brasa/brasa.h>
#include <brasa/nn/utils.h>
#include <brasa/optim.h>
#include <brasa/serialize.h>
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

namespace brasa::optim {
namespace {

template <class O>
class Each : public testing::Test {};
using All = testing::Types<Adagrad, RMSprop, Adadelta, Adamax, ASGD, Rprop, NAdam, RAdam, Adafactor>;
TYPED_TEST_SUITE(Each, All);

template <class Options, class State>
Options& options_of(EachParameter<Options, State>& optimizer) {
  return static_cast<Options&>(optimizer.param_groups()[0].options());
}

template <class O>
void steps(O& optimizer, Tensor& x, int n) {
  for (int i = 0; i < n; ++i) {
    optimizer.zero_grad();
    (x - tensor({1.f, -2.f})).square().sum().backward();
    optimizer.step();
  }
}

TYPED_TEST(Each, Descends) {
  Tensor x = zeros({2}, requires_grad());
  TypeParam optimizer(std::vector<Tensor>{x});
  optimizer.defaults().set_lr(0.1);
  optimizer.param_groups()[0].options().set_lr(0.1);
  steps(optimizer, x, 40);
  EXPECT_LT((x - tensor({1.f, -2.f})).square().sum().template item<float>(), 4.95f);
}

// Each group counts its own updates, and an optimizer that was loaded does not count for the one that was saved.
TYPED_TEST(Each, GroupsGoOnWhereTheyWereSaved) {
  auto make = [](std::vector<Tensor>& x) {
    for (int i = 0; i < 2; ++i) x.push_back(zeros({2}, requires_grad()));
    return TypeParam(std::vector<OptimizerParamGroup>{{{x[0]}}, {{x[1]}}});
  };
  auto step = [](TypeParam& optimizer, std::vector<Tensor>& x) {
    optimizer.zero_grad();
    ((x[0] - 1).square().sum() + (x[1] + 2).square().sum()).backward();
    optimizer.step();
  };
  std::vector<Tensor> x, y;
  TypeParam a = make(x), b = make(y);
  step(a, x);
  step(a, x);
  serialize::OutputArchive out;
  a.save(out);
  {
    NoGradGuard guard;
    for (int i = 0; i < 2; ++i) y[i].copy_(x[i]);
  }
  serialize::InputArchive in(out.contents());
  b.load(in);
  for (int i = 0; i < 2; ++i) {
    step(a, x);
    step(b, y);
  }
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(allclose(x[i], y[i], 1e-6, 1e-7)) << x[i] << y[i];
}

TYPED_TEST(Each, GoesOnWhereItWasSaved) {
  Tensor x = zeros({2}, requires_grad());
  TypeParam a(std::vector<Tensor>{x});
  steps(a, x, 3);
  serialize::OutputArchive out;
  a.save(out);
  Tensor y = x.detach().clone().set_requires_grad(true);
  TypeParam b(std::vector<Tensor>{y});
  serialize::InputArchive in(out.contents());
  b.load(in);
  EXPECT_TRUE(a.param_groups()[0].options() == b.param_groups()[0].options());
  EXPECT_TRUE(*a.state().at(x.impl()) == *b.state().at(y.impl()));
  steps(a, x, 3);
  steps(b, y, 3);
  EXPECT_TRUE(x.equal(y));
}

TYPED_TEST(Each, RefusesANegativeRate) {
  EXPECT_THROW(TypeParam(std::vector<Tensor>{zeros({1}, requires_grad())}, -1.0), Error);
}

TYPED_TEST(Each, AscendsToMaximize) {
  Tensor x = zeros({2}, requires_grad());
  TypeParam optimizer(std::vector<Tensor>{x});
  optimizer.param_groups()[0].options().set_lr(0.1);
  options_of(optimizer).maximize(true);
  steps(optimizer, x, 10);
  EXPECT_GT((x - tensor({1.f, -2.f})).square().sum().template item<float>(), 5.f);
}

Tensor trained_matrix(MuonOptions options, int n) {
  manual_seed(3);
  Tensor target = randn({6, 4}), w = zeros({6, 4}, requires_grad());
  Muon optimizer(std::vector<Tensor>{w}, options);
  for (int i = 0; i < n; ++i) {
    optimizer.zero_grad();
    (w - target).square().sum().backward();
    optimizer.step();
  }
  return w.detach();
}

TEST(Muon, StepsAreNearlyOrthogonal) {
  // All singular values of the first step are about the rate, · sqrt(6 / 4) for the sizes.
  Tensor w = trained_matrix(MuonOptions(0.1).weight_decay(0), 1);
  Tensor gram = w.t().matmul(w) / (0.01 * 1.5);
  EXPECT_LT((gram - eye(4)).abs().max().item<double>(), 0.6) << gram;
  EXPECT_GT(gram.diagonal().min().item<double>(), 0.4);
  Tensor other = trained_matrix(MuonOptions(0.1).weight_decay(0).adjust_lr_fn("match_rms_adamw"), 1);
  EXPECT_TRUE(allclose(other / w, full({6, 4}, 0.2 * std::sqrt(6.0) / std::sqrt(1.5)), 1e-4, 1e-4));
}

TEST(Muon, IsSavedAndRefusesVectors) {
  Tensor w = ones({2, 2}, requires_grad());
  Muon a(std::vector<Tensor>{w}, MuonOptions(0.5).nesterov(false).adjust_lr_fn("match_rms_adamw"));
  w.mutable_grad() = ones({2, 2});
  a.step();
  serialize::OutputArchive out;
  a.save(out);
  Muon b(std::vector<Tensor>{w});
  serialize::InputArchive in(out.contents());
  b.load(in);
  EXPECT_TRUE(a.param_groups()[0].options() == b.param_groups()[0].options());
  EXPECT_TRUE(*a.state().at(w.impl()) == *b.state().at(w.impl()));
  Tensor v = ones({2}, requires_grad());
  v.mutable_grad() = ones({2});
  Muon c(std::vector<Tensor>{v});
  EXPECT_THROW(c.step(), Error);
  EXPECT_THROW(Muon(std::vector<Tensor>{w}, MuonOptions().adjust_lr_fn("mine")), Error);
}

TEST(LBFGS, FindsTheMinimumOfRosenbrock) {
  Tensor x = tensor({-1.2, 1.0}, kFloat64).set_requires_grad(true);
  LBFGS optimizer(std::vector<Tensor>{x}, LBFGSOptions(1).max_iter(60).line_search_fn("strong_wolfe"));
  auto closure = [&] {
    optimizer.zero_grad();
    Tensor f = (1 - x[0]).square() + 100 * (x[1] - x[0].square()).square();
    f.backward();
    return f;
  };
  optimizer.step(closure);
  EXPECT_TRUE(x.allclose(ones({2}, kFloat64), 1e-4, 1e-4)) << x;
  EXPECT_THROW(optimizer.step(nullptr), Error);
}

// Evaluations and places after a step, by PyTorch 2.15; those that are bounded by Python's.
TEST(LBFGS, SearchesAsPyTorch) {
  struct Case {
    LBFGSOptions options;
    double sign, clip;
    int evaluations;
    double x, y;
  };
  LBFGSOptions once = LBFGSOptions(1).max_iter(1).line_search_fn("strong_wolfe");
  auto bounded = [&](int64_t iterations) {
    return LBFGSOptions(0.01).max_iter(iterations).line_search_fn("strong_wolfe").search_within_max_eval(true);
  };
  Case cases[] = {
      {once, 1, 0, 3, -1.02453193, 1.07161962},
      {LBFGSOptions(once).max_eval(26).search_within_max_eval(true), 1, 0.05, 10, -1.15324002, 1.01908571},
      {LBFGSOptions(once).maximize(true), -1, 0, 3, -1.02453193, 1.07161962},
      {LBFGSOptions(once).search_within_max_eval(true), 1, 0, 2, -1.2, 1},
      {bounded(3), 1, 0, 3, -1.12898551, 1.02898551},
      {bounded(20), 1, 0.05, 25, -1.19859727, 1.00057273},
  };
  for (const Case& c : cases) {
    Tensor x = tensor({-1.2, 1.0}, kFloat64).set_requires_grad(true);
    LBFGS optimizer(std::vector<Tensor>{x}, c.options);
    int evaluations = 0;
    optimizer.step([&] {
      optimizer.zero_grad();
      Tensor f = c.sign * ((1 - x[0]).square() + 100 * (x[1] - x[0].square()).square());
      f.backward();
      if (c.clip > 0) nn::utils::clip_grad_norm_({x}, c.clip);
      ++evaluations;
      return f;
    });
    EXPECT_EQ(evaluations, c.evaluations);
    EXPECT_NEAR(x[0].item<double>(), c.x, 1e-8);
    EXPECT_NEAR(x[1].item<double>(), c.y, 1e-8);
  }
}

TEST(Adam, DecoupledWeightDecayIsAdamW) {
  Tensor a = tensor({1.0, -2.0}, kFloat64).set_requires_grad(true), b = a.detach().clone().set_requires_grad(true);
  Adam adam(std::vector<Tensor>{a}, AdamOptions(0.1).weight_decay(0.3).decoupled_weight_decay(true));
  AdamW adamw(std::vector<Tensor>{b}, AdamWOptions(0.1).weight_decay(0.3));
  for (Tensor* p : {&a, &b}) p->square().sum().backward();
  adam.step();
  adamw.step();
  EXPECT_TRUE(a.equal(b));
  std::stringstream file;
  brasa::save(adam, file);
  Adam again(std::vector<Tensor>{a}, AdamOptions(0.1));
  brasa::load(again, file);
  EXPECT_TRUE(static_cast<AdamOptions&>(again.param_groups()[0].options()).decoupled_weight_decay());
}

TEST(Optimizer, StepMayBeOverridden) {
  struct Halve : Optimizer {
    using Optimizer::Optimizer;
    Tensor step(LossClosure = nullptr) override {
      NoGradGuard no_grad;
      for (Tensor& p : parameters()) p.mul_(0.5);
      return {};
    }
  };
  Tensor x = ones({1}, requires_grad());
  Halve optimizer(std::vector<Tensor>{x});
  optimizer.step();
  EXPECT_EQ(x.item<float>(), 0.5f);
}

TEST(Adagrad, HasItsStateFromTheStart) {
  Tensor p = zeros({2}, requires_grad());
  Adagrad optimizer(std::vector<Tensor>{p}, AdagradOptions(0.1).initial_accumulator_value(3));
  auto& state = static_cast<AdagradParamState&>(*optimizer.state().at(p.impl()));
  EXPECT_TRUE(state.sum().equal(full({2}, 3.0)));
  EXPECT_EQ(state.step(), 0);
}

}  // namespace
}  // namespace brasa::optim
