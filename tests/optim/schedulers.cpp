#include <brasa/brasa.h>
#include <brasa/optim.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

namespace brasa::optim {
namespace {

namespace ls = lr_scheduler;

SGD two_groups(double first = 0.1, double second = 0.01) {
  std::vector<OptimizerParamGroup> groups;
  for (double lr : {first, second})
    groups.emplace_back(std::vector<Tensor>{zeros({1}, requires_grad())},
                        std::make_unique<SGDOptions>(SGDOptions(lr).momentum(0.9)));
  return SGD(groups, SGDOptions(0.1));
}

double rate(const Optimizer& o, size_t group = 0) { return o.param_groups()[group].options().get_lr(); }

template <class S>
std::vector<double> rates(Optimizer& optimizer, S& schedule, int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) {
    out.push_back(rate(optimizer));
    schedule.step();
  }
  return out;
}

void expect_rates(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-12) << i;
}

TEST(StepLR, LibTorchsCountsItsCallsFromZeroAndPythonsFromOne) {
  SGD a = two_groups(), b = two_groups();
  StepLR libtorch(a, 2);
  ls::StepLR python(b, 2);
  expect_rates(rates(a, libtorch, 5), {0.1, 0.1, 0.1, 0.01, 0.01});
  expect_rates(rates(b, python, 5), {0.1, 0.1, 0.01, 0.01, 0.001});
}

TEST(LrScheduler, GroupsKeepTheirOwnRates) {
  SGD o = two_groups();
  ls::LambdaLR schedule(
      o, std::vector<ls::Lambda>{[](int64_t e) { return 1.0 + static_cast<double>(e); }, [](int64_t) { return 2.0; }});
  schedule.step();
  EXPECT_NEAR(rate(o, 0), 0.2, 1e-12);
  EXPECT_NEAR(rate(o, 1), 0.02, 1e-12);
  EXPECT_EQ(schedule.get_last_lr(), (std::vector<double>{rate(o, 0), rate(o, 1)}));
  EXPECT_EQ(schedule.last_epoch(), 1);
}

// What a schedule reaches step by step is what it gives for the epoch at once.
template <class S, class... A>
void expect_closed_form(A... args) {
  SGD stepped = two_groups(), jumped = two_groups();
  S slow(stepped, args...), fast(jumped, args...);
  for (int epoch = 1; epoch < 12; ++epoch) {
    slow.step();
    fast.step(epoch);
    EXPECT_NEAR(rate(stepped), rate(jumped), 1e-12) << epoch;
    EXPECT_NEAR(rate(stepped, 1), rate(jumped, 1), 1e-12) << epoch;
  }
}
TEST(LrScheduler, ClosedForms) {
  expect_closed_form<ls::StepLR>(3, 0.5);
  expect_closed_form<ls::MultiStepLR>(std::vector<int64_t>{7, 2, 2}, 0.5);
  expect_closed_form<ls::ConstantLR>(0.25, 4);
  expect_closed_form<ls::LinearLR>(0.25, 0.75, 4);
  expect_closed_form<ls::ExponentialLR>(0.8);
  expect_closed_form<ls::PolynomialLR>(6, 2.0);
  expect_closed_form<ls::CosineAnnealingLR>(4, 0.001);
  expect_closed_form<ls::CosineAnnealingWarmRestarts>(2, 2, 0.001);
}

TEST(CosineAnnealingWarmRestarts, TakesPartsOfEpochs) {
  SGD o = two_groups();
  ls::CosineAnnealingWarmRestarts schedule(o, 2);
  schedule.step(0.5);
  EXPECT_NEAR(rate(o), 0.1 * (1 + std::cos(std::numbers::pi / 4)) / 2, 1e-12);
}

TEST(CyclicLR, MovesMomentumTheOtherWay) {
  SGD o = two_groups();
  ls::CyclicLR schedule(o, ls::CyclicLROptions(0.01, 0.05).step_size_up(2).mode("triangular2"));
  EXPECT_NEAR(o.param_groups()[1].options().get_momentum().value(), 0.9, 1e-12);
  expect_rates(rates(o, schedule, 8), {0.01, 0.03, 0.05, 0.03, 0.01, 0.02, 0.03, 0.02});
  EXPECT_NEAR(o.param_groups()[0].options().get_momentum().value(), 0.9, 1e-12);
}

TEST(OneCycleLR, CyclesBetaOfAdamAndEnds) {
  Tensor p = zeros({1}, requires_grad());
  Adam o(std::vector<Tensor>{p});
  ls::OneCycleLR schedule(o, ls::OneCycleLROptions(0.5, 10));
  EXPECT_NEAR(rate(o), 0.02, 1e-12);
  EXPECT_NEAR(std::get<0>(static_cast<AdamOptions&>(o.param_groups()[0].options()).betas()), 0.95, 1e-12);
  for (int i = 0; i < 10; ++i) schedule.step();
  EXPECT_THROW(schedule.step(), Error);
  Adagrad none(std::vector<Tensor>{p});
  EXPECT_THROW(ls::OneCycleLR(none, ls::OneCycleLROptions(0.5, 10)), Error);
}

TEST(OneCycleLR, TakesEpochsAndStepsOfEach) {
  SGD whole = two_groups(), parts = two_groups();
  ls::OneCycleLR by_steps(whole, ls::OneCycleLROptions(std::vector<double>{0.5, 0.25}, 12));
  ls::OneCycleLR by_epochs(parts, ls::OneCycleLROptions(std::vector<double>{0.5, 0.25}, 3, 4));
  expect_rates(rates(parts, by_epochs, 12), rates(whole, by_steps, 12));
  EXPECT_NEAR(rate(parts, 1), rate(whole, 1), 1e-12);
  EXPECT_THROW(by_epochs.step(), Error);
  SGD one = two_groups(), other = two_groups();
  ls::OneCycleLR a(one, ls::OneCycleLROptions(0.5, 3, 4)), b(other, ls::OneCycleLROptions(0.5, 12));
  expect_rates(rates(one, a, 12), rates(other, b, 12));
  for (auto [epochs, steps] : {std::pair<int64_t, int64_t>{0, 4}, {3, 0}, {-3, -4}, {int64_t{1} << 62, 4}})
    EXPECT_THROW(ls::OneCycleLROptions(0.5, epochs, steps), Error) << epochs << " epochs of " << steps;
}

TEST(SequentialLR, StartsEachScheduleAtItsMilestone) {
  SGD o = two_groups();
  auto warm = std::make_shared<ls::ConstantLR>(o, 0.5, 100);
  auto decay = std::make_shared<ls::ExponentialLR>(o, 0.5);
  ls::SequentialLR schedule(o, {warm, decay}, {2});
  expect_rates(rates(o, schedule, 5), {0.05, 0.05, 0.1, 0.05, 0.025});
  EXPECT_THROW(ls::SequentialLR(o, {warm}, {2}), Error);
  SGD other = two_groups();
  EXPECT_THROW(ls::SequentialLR(other, {warm, decay}, {2}), Error);
}

TEST(ChainedScheduler, MultipliesThem) {
  SGD o = two_groups();
  ls::ChainedScheduler schedule(
      o, {std::make_shared<ls::ConstantLR>(o, 0.5, 2), std::make_shared<ls::ExponentialLR>(o, 0.5)});
  expect_rates(rates(o, schedule, 4), {0.05, 0.025, 0.025, 0.0125});
}

TEST(ReduceLROnPlateau, WaitsCoolsDownAndHasALeastRate) {
  SGD o = two_groups();
  using Plateau = ReduceLROnPlateauScheduler;
  Plateau schedule(o, Plateau::min, 0.1, 1, 1e-4, Plateau::rel, 2, {0.005, 0.0});
  for (double metric : {1.0, 1.0, 1.0}) schedule.step(metric);
  EXPECT_NEAR(rate(o, 0), 0.01, 1e-12);
  EXPECT_NEAR(rate(o, 1), 0.001, 1e-12);
  for (int i = 0; i < 3; ++i) schedule.step(1.0);
  EXPECT_NEAR(rate(o, 0), 0.01, 1e-12);  // two steps of cooling down, and one that is borne
  schedule.step(1.0);
  EXPECT_NEAR(rate(o, 0), 0.005, 1e-12);
  schedule.step(0.5);
  schedule.reset();
  schedule.step(0.9);
  EXPECT_NEAR(rate(o, 1), 0.0001, 1e-12);
  EXPECT_THROW(Plateau(o, Plateau::max, 1.0), Error);
  EXPECT_THROW(Plateau(o, Plateau::max, 0.1, 1, 1e-4, Plateau::abs, 0, {0.1, 0.1, 0.1}), Error);
}

TEST(LrScheduler, GoesOnWhereItWasSaved) {
  auto make = [](Optimizer& o) {
    return ls::SequentialLR(
        o, {std::make_shared<ls::LinearLR>(o, 0.5, 1.0, 3), std::make_shared<ls::CosineAnnealingWarmRestarts>(o, 3, 2)},
        {3});
  };
  SGD a = two_groups(), b = two_groups();
  ls::SequentialLR first = make(a), second = make(b);
  for (int i = 0; i < 5; ++i) first.step();
  serialize::OutputArchive out;
  first.save(out);
  serialize::InputArchive in(out.contents());
  second.load(in);
  for (size_t g = 0; g < 2; ++g) b.param_groups()[g].options().set_lr(rate(a, g));
  expect_rates(rates(a, first, 6), rates(b, second, 6));
}

TEST(LrScheduler, RefusesWrongNumbers) {
  SGD o = two_groups();
  EXPECT_THROW(ls::StepLR(o, 0), Error);
  EXPECT_THROW(ls::ConstantLR(o, 1.5), Error);
  EXPECT_THROW(ls::LinearLR(o, 0.0), Error);
  EXPECT_THROW(ls::CosineAnnealingWarmRestarts(o, 0), Error);
  EXPECT_THROW(ls::CyclicLR(o, ls::CyclicLROptions(0.1, 0.2).mode("square")), Error);
  EXPECT_THROW(ls::OneCycleLR(o, ls::OneCycleLROptions(0.1, 10).anneal_strategy("step")), Error);
  EXPECT_THROW(ls::SWALR(o, std::vector<double>{1, 2, 3}), Error);
  EXPECT_THROW(ls::ChainedScheduler(o, {}), Error);
}

}  // namespace
}  // namespace brasa::optim
