#include "transforms/branch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/branch.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

// A branch's derivatives and batches are those of the side that is taken.
namespace brasa::transforms {
namespace {

using ir::Value;
using ops::Array;
using Values = std::vector<Value>;
using Span = std::span<const Value>;

// What each graph is made of: the predicate, x [2, 3], w [3, 3], and b [3], which one side does not read.
std::vector<ir::Type> types() {
  DType t = DType::Float64;
  return {{DType::Bool, {}, false}, {t, {2, 3}, false}, {t, {3, 3}, false}, {t, {3}, false}};
}

Values yes(Span in) {
  using namespace ops;  // NOLINT: the algebra on Values
  return {ops::tanh(matmul2(in[0], in[1])), sum(in[0] * in[0], {0}), full(1, {}, DType::Int64)};
}
Values no(Span in) {
  using namespace ops;  // NOLINT: the algebra on Values
  return {in[0] * in[2], in[2] * 3, full(2, {}, DType::Int64)};
}

enum class Form { Branch, Selected, Yes, No };

std::unique_ptr<ir::Graph> graph_of(ir::Facts& facts, Form form) {
  auto g = std::make_unique<ir::Graph>(ir::Level::Primitives);
  ops::Builder builder(*g, facts);
  Values in;
  for (const ir::Type& t : types()) in.push_back(g->add_input(t));
  Values operands(in.begin() + 1, in.end()), out;
  if (form == Form::Yes || form == Form::No) {
    out = form == Form::Yes ? yes(operands) : no(operands);
  } else {
    out = ops::cond(in[0], operands, yes, no);
    if (form == Form::Selected) out = ops::selected(ops::BranchNode(*out[0].node));
  }
  for (Value v : out) g->add_output(v);
  return g;
}

std::vector<Array> inputs_of(const ir::Graph& g, bool holds) {
  std::vector<Array> out;
  for (const ir::Input& in : g.inputs()) {
    const ir::Type& t = ir::type_of(in.value);
    Array a = ops::make_array(t.dtype, ops::constants(t.shape));
    for (int64_t i = 0; i < a.numel(); ++i)
      if (t.dtype == DType::Bool)
        ops::set(a, i, holds == (i % 2 == 0));  // the first of many calls, and every other one
      else
        ops::set(a, i, 0.8 * std::sin(1.3 * static_cast<double>(i) + static_cast<double>(out.size())));
    out.push_back(std::move(a));
  }
  return out;
}

void expect_same(const std::vector<Array>& x, const std::vector<Array>& y) {
  ASSERT_EQ(x.size(), y.size());
  for (size_t k = 0; k < x.size(); ++k) {
    ASSERT_EQ(x[k].shape, y[k].shape) << k;
    for (int64_t i = 0; i < x[k].numel(); ++i)
      ASSERT_NEAR(ops::get(x[k], i), ops::get(y[k], i), 1e-12) << "output " << k << ", element " << i;
  }
}

class Branches : public testing::TestWithParam<bool> {
 protected:
  ir::Facts facts;
  std::unique_ptr<ir::Graph> taken = graph_of(facts, GetParam() ? Form::Yes : Form::No);
  std::vector<Array> run(const ir::Graph& g) { return ops::evaluate(g, inputs_of(g, GetParam())); }
};

TEST_P(Branches, GiveWhatTheSideGives) {
  for (Form form : {Form::Branch, Form::Selected}) expect_same(run(*graph_of(facts, form)), run(*taken));
}

// Gradients of all operands, zeros where the side does not read one.
TEST_P(Branches, Backward) {
  auto gradients = [&](const ir::Graph& graph, const std::vector<bool>& given) {
    ir::Graph g(ir::Level::Primitives);
    ops::Builder builder(g, facts);
    Values in, cts;
    for (const ir::Type& t : types()) in.push_back(g.add_input(t));
    for (size_t k = 0; k < given.size(); ++k)
      if (given[k]) cts.push_back(g.add_input(ir::type_of(graph.outputs()[k].value)));
    for (Value v : derivative(graph, {false, true, true, true}, given, in, cts)) g.add_output(v);
    return run(g);
  };
  for (Form form : {Form::Branch, Form::Selected})
    for (std::vector<bool> given : {std::vector<bool>{true, true, false}, {true, false, false}, {false, true, false}})
      expect_same(gradients(*graph_of(facts, form), given), gradients(*taken, given));
}

TEST_P(Branches, BackwardTwice) {
  auto twice = [&](const ir::Graph& g) {
    JointGraph once = joint(g, facts, {false, true, true, true}, {true, true, false});
    std::vector<bool> needs(once.graph->inputs().size(), true), given(once.graph->outputs().size(), true);
    needs[0] = given[2] = false;
    ir::Graph all(ir::Level::Primitives);
    ops::Builder builder(all, facts);
    Values in, cts;
    for (const ir::Input& i : once.graph->inputs()) in.push_back(all.add_input(ir::type_of(i.value)));
    for (size_t k = 0; k < given.size(); ++k)
      if (given[k]) cts.push_back(all.add_input(ir::type_of(once.graph->outputs()[k].value)));
    for (Value v : derivative(*once.graph, needs, given, in, cts)) all.add_output(v);
    return run(all);
  };
  // The sides read w or b alone: both graphs have gradients for the same operands only where all are asked of the branch.
  std::vector<Array> branch = twice(*graph_of(facts, Form::Branch)), selected = twice(*graph_of(facts, Form::Selected));
  expect_same(branch, selected);
}

TEST_P(Branches, Forward) {
  std::vector<bool> moves{false, true, true, true};
  Forward a = jvp(*graph_of(facts, Form::Branch), facts, moves),
          b = jvp(*graph_of(facts, Form::Selected), facts, moves);
  EXPECT_EQ(a.tangent_of, b.tangent_of);
  expect_same(run(*a.graph), run(*b.graph));
}

// Calls that agree in the predicate, and calls that do not.
TEST_P(Branches, ManyCalls) {
  for (bool differ : {false, true}) {
    std::vector<bool> mapped{differ, true, false, true};
    auto a = vmap(*graph_of(facts, Form::Branch), facts, mapped, ir::Expr(3));
    auto b = vmap(*graph_of(facts, Form::Selected), facts, mapped, ir::Expr(3));
    expect_same(run(*a), run(*b));
  }
}

INSTANTIATE_TEST_SUITE_P(Sides, Branches, testing::Bool(), [](const auto& i) { return i.param ? "Yes" : "No"; });

}  // namespace
}  // namespace brasa::transforms
