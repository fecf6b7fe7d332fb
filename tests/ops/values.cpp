#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include "eager_call.h"
#include "ops/table.h"
#include "support/str.h"

// Numbers of eager calls: one that is new needs no new code (every row is called with many values of each of its numbers).
namespace brasa::test {
namespace {

constexpr int kValues = 50;
// What facts about sizes tell apart: a size of 0 or 1, a number that is one of the special ones or the default, a sign.
constexpr int64_t kMost = 10;

// The k-th value of an argument like this one; nothing where it is no number that varies.
std::optional<ir::Arg> varied(const ir::Param& p, const ir::Arg& arg, int k) {
  if (p.use == ir::NumberUse::Known) return std::nullopt;
  auto more = [&](ir::Expr e) { return ir::Expr(e.constant() + (e.constant() < 0 ? -k : k)); };
  if (auto* d = arg.get_if<double>()) return ir::Arg(*d * (1 + 0.013 * k) + (*d == 0 ? 0.013 * k : 0));
  if (auto* e = arg.get_if<ir::Expr>()) return ir::Arg(more(*e));
  if (auto* list = arg.get_if<std::vector<ir::Expr>>()) {
    std::vector<ir::Expr> items;
    for (ir::Expr e : *list) items.push_back(more(e));
    return ir::Arg(items);
  }
  return std::nullopt;
}

// Whether some number of the call varies.
bool varies(const ops::Row& row, const SampleArgs& args) {
  for (size_t i = 0; i < args.size(); ++i)
    if (auto* literal = std::get_if<ir::Arg>(&args[i]); literal && varied(row.schema.params[i], *literal, 1))
      return true;
  return false;
}

class Values : public ::testing::TestWithParam<std::string> {};

TEST_P(Values, OfANumberShareCode) {
  const ops::Row& row = ops::at(GetParam());
  const auto& params = row.schema.params;
  for (const ops::Sample& sample : row.samples) {
    SampleArgs args = sample.args;
    for (size_t i = args.size(); i < params.size() && params[i].type != ir::ParamType::Generator; ++i)
      args.emplace_back(params[i].default_value.value_or(ir::Arg()));
    for (size_t i = 0; i < args.size(); ++i) {
      auto* literal = std::get_if<ir::Arg>(&args[i]);
      if (!literal || !varied(params[i], *literal, 1)) continue;
      int64_t before = stats().compilations;
      int worked = 0;
      for (int k = 0; k < kValues; ++k) {
        SampleArgs now = args;
        now[i] = *varied(params[i], *literal, k);
        try {
          EagerCall call(row, now);
          brasa::call(row.name(), call.args());
          ++worked;
        } catch (const Error&) {
          // Not every value is right for the other arguments.
        }
      }
      EXPECT_LE(stats().compilations - before, kMost)
          << row.name() << ": " << worked << " values of " << params[i].name;
    }
  }
}

// Of eager calls, where numbers are inputs: a derivative must not ask for their values.
TEST_P(Values, AreNotNeededForGradients) {
  const ops::Row& row = ops::at(GetParam());
  if (row.no_gradient) GTEST_SKIP() << "has no gradient";
  for (const ops::Sample& sample : row.samples) {
    if (!varies(row, sample.args)) continue;
    EagerCall call(row, sample.args, true);
    std::vector<Tensor> outputs, cotangents;
    for (const Tensor& t : brasa::call(row.name(), call.args()))
      if (t.defined() && t.requires_grad()) {
        outputs.push_back(t);
        cotangents.push_back(ones_like(t));
      }
    if (!outputs.empty()) {
      EXPECT_NO_THROW(autograd::grad(outputs, call.asked(), cotangents, std::nullopt, false, true));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rows, Values, ::testing::ValuesIn(composed_rows()),
                         [](const auto& info) { return test_name(info.param); });

}  // namespace
}  // namespace brasa::test
