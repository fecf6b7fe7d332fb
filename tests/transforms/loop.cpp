#include "transforms/loop.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/interpreter.h"
#include "ops/loop.h"
#include "ops/primitives/interp.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

// A loop's derivatives and batches are those of its steps written one after the other.
namespace brasa::transforms {
namespace {

using ir::Expr;
using ir::Value;
using ops::Array;
using Values = std::vector<Value>;
using Span = std::span<const Value>;

constexpr int64_t kSteps = 4;

// What each graph is made of: two states [2, 3], items [4, 2, 3], weights [3, 3] and a bias [3].
std::vector<ir::Type> types() {
  DType t = DType::Float64;
  return {{t, {2, 3}, false}, {t, {2, 3}, false}, {t, {kSteps, 2, 3}, false}, {t, {3, 3}, false}, {t, {3}, false}};
}

struct Form {
  bool reverse, unrolled;
};

// Products with weights, sums that broadcast, a state that only the other one reads, results that hang on the states or not.
Values build(const Values& v, Form form) {
  using namespace ops;  // NOLINT: the algebra on Values
  LoopOperands loop{{v[0], v[1]}, {v[2]}, {v[3], v[4]}, Expr(kSteps), form.reverse};
  auto step = [](Span s, Span x, Span w) {
    Value gate = ops::tanh(matmul2(s[0], transpose(w[0], 0, 1)) + w[1] + x[0]);
    Value c = s[1] * ops::sigmoid(x[0]) + gate * gate;
    return Values{gate * ops::tanh(c), c, sum(gate * w[1], {1}), x[0] * x[0] * w[1]};
  };
  Values all = scan_loop(loop, step);
  if (form.unrolled) {
    Values again = unrolled(LoopNode(*all[0].node));
    all = again;
  }
  return {last_state(all[0], loop), all[1], all[2], all[3], states_after(all[0], loop)};
}

Array numbers(const ir::Type& t, double phase) {
  Array a = ops::make_array(t.dtype, ops::constants(t.shape));
  for (int64_t i = 0; i < a.numel(); ++i) ops::set(a, i, 0.8 * std::sin(1.3 * static_cast<double>(i) + phase));
  return a;
}

std::unique_ptr<ir::Graph> graph_of(ir::Facts& facts, Form form) {
  auto g = std::make_unique<ir::Graph>(ir::Level::Primitives);
  ops::Builder builder(*g, facts);
  Values in;
  for (const ir::Type& t : types()) in.push_back(g->add_input(t));
  for (Value v : build(in, form)) g->add_output(v);
  return g;
}

std::vector<Array> inputs_of(const ir::Graph& g) {
  std::vector<Array> out;
  for (const ir::Input& in : g.inputs()) out.push_back(numbers(ir::type_of(in.value), static_cast<double>(out.size())));
  return out;
}

void expect_same(const ir::Graph& a, const ir::Graph& b) {
  std::vector<Array> in = inputs_of(a), x = ops::evaluate(a, in), y = ops::evaluate(b, in);
  ASSERT_EQ(x.size(), y.size());
  for (size_t k = 0; k < x.size(); ++k) {
    ASSERT_EQ(x[k].shape, y[k].shape) << k;
    for (int64_t i = 0; i < x[k].numel(); ++i)
      ASSERT_NEAR(ops::get(x[k], i), ops::get(y[k], i), 1e-10) << "output " << k << ", element " << i;
  }
}

bool has_loop(const ir::Graph& g) {
  auto loops = [](const ir::Node* n) { return ops::kind_of(*n) == ops::Kind::Loop; };
  return std::any_of(g.nodes().begin(), g.nodes().end(), loops);
}

class Loops : public testing::TestWithParam<bool> {
 protected:
  ir::Facts facts;
  std::unique_ptr<ir::Graph> loop = graph_of(facts, {GetParam(), false}), steps = graph_of(facts, {GetParam(), true});
};

TEST_P(Loops, GiveWhatTheirStepsGive) { expect_same(*loop, *steps); }

TEST_P(Loops, Backward) {
  for (int operand = -1; operand < 5; ++operand)
    for (int output = -1; output < 5; ++output) {
      std::vector<bool> needs(5, operand < 0), given(5, output < 0);
      if (operand >= 0) needs[operand] = true;
      if (output >= 0) given[output] = true;
      JointGraph a = joint(*loop, facts, needs, given), b = joint(*steps, facts, needs, given);
      ASSERT_TRUE(has_loop(*a.graph));
      // One gradient may be zero without a word where the other one is zeros.
      for (size_t i = 0; i < 5; ++i)
        if (a.gradient_of[i] < 0 || b.gradient_of[i] < 0) needs[i] = false;
      a = joint(*loop, facts, needs, given);
      b = joint(*steps, facts, needs, given);
      expect_same(*a.graph, *b.graph);
    }
}

// Of all gradients, the gradient again.
TEST_P(Loops, BackwardTwice) {
  auto twice = [&](const ir::Graph& g) {
    std::vector<bool> needs(5, true), given(5, true);
    JointGraph once = joint(g, facts, needs, given);
    for (size_t i = 0; i < 5; ++i) EXPECT_GE(once.gradient_of[i], 0);
    std::vector<bool> all(once.graph->inputs().size(), true);
    return joint(*once.graph, facts, all, std::vector<bool>(once.graph->outputs().size(), true)).graph;
  };
  expect_same(*twice(*loop), *twice(*steps));
}

TEST_P(Loops, Forward) {
  for (int operand = -1; operand < 5; ++operand) {
    std::vector<bool> moves(5, operand < 0);
    if (operand >= 0) moves[operand] = true;
    Forward a = jvp(*loop, facts, moves), b = jvp(*steps, facts, moves);
    ASSERT_TRUE(has_loop(*a.graph));
    // Tangents that are zeros in one may be absent in the other.
    for (size_t k = 0; k < 5; ++k) {
      if ((a.tangent_of[k] < 0) == (b.tangent_of[k] < 0)) continue;
      Forward& longer = a.tangent_of[k] < 0 ? b : a;
      auto& outputs = longer.graph->outputs();
      outputs.erase(outputs.begin() + longer.tangent_of[k]);
      for (int& at : longer.tangent_of)
        if (at > longer.tangent_of[k]) --at;
      longer.tangent_of[k] = -1;
    }
    expect_same(*a.graph, *b.graph);
  }
}

TEST_P(Loops, ManyCalls) {
  for (int operand = -1; operand < 5; ++operand) {
    std::vector<bool> mapped(5, operand < 0);
    if (operand >= 0) mapped[operand] = true;
    auto a = vmap(*loop, facts, mapped, Expr(3)), b = vmap(*steps, facts, mapped, Expr(3));
    ASSERT_TRUE(has_loop(*a));
    expect_same(*a, *b);
  }
}

INSTANTIATE_TEST_SUITE_P(Directions, Loops, testing::Bool(),
                         [](const auto& i) { return i.param ? "Backwards" : "Forwards"; });

}  // namespace
}  // namespace brasa::transforms
