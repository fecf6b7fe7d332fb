// What a group of parameters has of its optimizer.
#include <brasa/brasa.h>
#include <brasa/optim.h>
#include <gtest/gtest.h>

namespace brasa::optim {
namespace {

class Lessen final : public FieldVisitor {
 public:
  void tensor(const std::string&, Tensor&, bool) override {}
  void number(const std::string&, double& x) override { x *= 0.9; }
  void number(const std::string&, std::optional<double>& x) override { x = x.value_or(1) * 0.9; }
};

OptimizerOptions& with(OptimizerOptions& of_group, std::unique_ptr<OptimizerOptions> of_optimizer,
                       std::unique_ptr<Optimizer>& o) {
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{zeros({1}, requires_grad())}, of_group.clone());
  o = std::make_unique<Optimizer>(groups, std::move(of_optimizer));
  return o->param_groups()[0].options();
}

template <class Options>
class GroupOptions : public testing::Test {};
using All = testing::Types<SGDOptions, AdamOptions, AdamWOptions, AdagradOptions, RMSpropOptions, AdadeltaOptions,
                           AdamaxOptions, ASGDOptions, RpropOptions, NAdamOptions, RAdamOptions, AdafactorOptions,
                           SparseAdamOptions, MuonOptions, LBFGSOptions>;
TYPED_TEST_SUITE(GroupOptions, All);

TYPED_TEST(GroupOptions, AreTheOptimizersWhereNotGiven) {
  TypeParam defaults, own;
  Lessen lessen;
  defaults.visit(lessen);
  own.lr(0.123);
  std::unique_ptr<Optimizer> o;
  OptimizerOptions& found = with(own, defaults.clone(), o);
  defaults.lr(0.123);
  EXPECT_TRUE(found == defaults);
}

TYPED_TEST(GroupOptions, TakeRatesThatAreTensors) {
  TypeParam defaults, own;
  if constexpr (std::is_base_of_v<OptimizerTensorRateOptions<TypeParam>, TypeParam>) {
    defaults.set_lr(scalar_tensor(0.25));
    std::unique_ptr<Optimizer> o;
    EXPECT_EQ(with(own, defaults.clone(), o).lr_tensor().template item<double>(), 0.25);
    own.lr(0.125);
    EXPECT_FALSE(with(own, defaults.clone(), o).lr_tensor().defined());
  }
}

// Of two numbers that are set at once one may be the usual one.
TEST(Groups, OptionsOfSeveralNumbersAreOne) {
  AdamOptions defaults, own;
  defaults.betas({0.5, 0.5});
  own.betas({0.8, std::get<1>(own.betas())});
  std::unique_ptr<Optimizer> o;
  auto& found = static_cast<AdamOptions&>(with(own, defaults.clone(), o));
  EXPECT_EQ(found.betas(), own.betas());
}

// As PyTorch has it, what sums begin with is the optimizer's alone.
TEST(Groups, AdagradBeginsAsTheOptimizerSays) {
  Tensor x = zeros({1}, requires_grad());
  std::vector<OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<Tensor>{x}, AdagradOptions().initial_accumulator_value(4).clone());
  Adagrad o(groups, AdagradOptions(0.5).initial_accumulator_value(3));
  x.sum().backward();
  o.step();
  EXPECT_FLOAT_EQ(x.item<float>(), -0.25f);
}

}  // namespace
}  // namespace brasa::optim
