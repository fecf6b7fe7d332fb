#include "ir/rewrite.h"

#include <brasa/error.h>
#include <gtest/gtest.h>

#include "ir/schema.h"

namespace brasa::ir {
namespace {

struct TestOp : Op {
  explicit TestOp(std::string_view s, bool commutes = false) : commutes_(commutes) { schema = parse_schema(s); }
  bool commutes() const override { return commutes_; }
  std::optional<std::vector<Type>> infer(const Args& args) const override {
    if (args[0].is<Value>()) return std::vector<Type>{type_of(args[0].get<Value>())};
    return std::vector<Type>{{args[2].get<DType>(), args[1].get<Shape>(), false}};
  }
  bool commutes_;
};

const Op* find(std::string_view name) {
  static const TestOp neg("t::neg(Tensor x) -> Tensor"), add("t::add(Tensor a, Tensor b) -> Tensor", true),
      sub("t::sub(Tensor a, Tensor b) -> Tensor"), roll("t::roll(Tensor x, int n) -> Tensor"),
      full("t::full(Scalar value, SymInt[] size, ScalarType dtype) -> Tensor");
  for (const TestOp* op : {&neg, &add, &sub, &roll, &full})
    if (op->name() == str("t::", name)) return op;
  return nullptr;
}

class Rewrite : public testing::Test {
 protected:
  Value node(const char* op, Args args) {
    return g.add(find(op), std::move(args), {{DType::Float32, {4}, false}})->out();
  }
  Value number(double v) { return node("full", {v, Shape{4}, DType::Float32}); }
  // The name of the rewritten output's op, and how often a rule applied.
  std::string run(std::vector<Rule> rules, Value out) {
    g.outputs().clear();
    g.add_output(out);
    result = rewrite(g, RuleSet(rules, find), &applied);
    return result->outputs()[0].value.node->op->name();
  }
  Graph g;
  Value x = g.add_input({DType::Float32, {4}, false}, "x"), y = g.add_input({DType::Float32, {4}, false}, "y");
  std::unique_ptr<Graph> result;
  size_t applied = 0;
};

TEST_F(Rewrite, RunsToAFixedPoint) {
  Value v = x;
  for (int i = 0; i < 7; ++i) v = node("neg", {v});
  EXPECT_EQ(run({{"neg(neg(x)) -> x"}}, v), "t::neg");
  EXPECT_EQ(applied, 3u);
  EXPECT_EQ(result->nodes().size(), 3u) << print(*result);  // both inputs and one neg
}

// A rule that goes from a node to its operand goes through all that the node is made of.
TEST_F(Rewrite, GoesDownAsDeepAsAGraph) {
  Value v = x;
  for (int i = 0; i < 2000; ++i) v = node("sub", {v, y});
  EXPECT_EQ(run({{"neg(sub(x, y)) -> sub(neg(x), y)"}}, node("neg", {v})), "t::sub");
  EXPECT_EQ(applied, 2000u);
}

TEST_F(Rewrite, ConstantsKeepTheirSign) {
  EXPECT_EQ(run({{"add(x, -0) -> x"}}, node("add", {x, number(-0.0)})), "input");
  EXPECT_EQ(run({{"add(x, -0) -> x"}}, node("add", {x, number(0.0)})), "t::add");
}

TEST_F(Rewrite, OperandsThatCommuteMatchEitherWay) {
  EXPECT_EQ(run({{"add(x, neg(y)) -> sub(x, y)"}}, node("add", {node("neg", {y}), x})), "t::sub");
  EXPECT_EQ(result->outputs()[0].value.node->arg<Value>(0), result->inputs()[0].value);
  EXPECT_EQ(run({{"sub(x, neg(y)) -> add(x, y)"}}, node("sub", {node("neg", {y}), x})), "t::sub");
}

TEST_F(Rewrite, ANameIsOneValue) {
  EXPECT_EQ(run({{"sub(x, x) -> 0"}}, node("sub", {x, x})), "t::full");
  EXPECT_EQ(run({{"sub(x, x) -> 0"}}, node("sub", {x, y})), "t::sub");
}

TEST_F(Rewrite, AttributesAreComputed) {
  Rule sum{"roll(roll(x, n), m) -> roll(x, k)", [](Match& m) {
             m.let("k", m.get<Expr>("n") + m.get<Expr>("m"));
             return !m.get<Expr>("n").is(9);
           }};
  Value inner = node("roll", {x, 2});
  EXPECT_EQ(run({sum}, node("roll", {inner, 3})), "t::roll");
  EXPECT_EQ(result->outputs()[0].value.node->arg<Expr>(1), Expr(5));
  run({sum}, node("roll", {node("roll", {x, 9}), 3}));
  EXPECT_EQ(applied, 0u);
}

TEST_F(Rewrite, ARuleThatChangesATypeDoesNotApply) {
  Value weak = g.add_input({DType::Float32, {4}, true}, "w");
  EXPECT_EQ(run({{"add(x, -0) -> x"}}, node("add", {weak, number(-0.0)})), "t::add");
}

TEST_F(Rewrite, MalformedRulesAreErrorsOfOurs) {
  for (const char* text : {"neg(x)", "nope(x) -> x", "neg(x, y) -> x", "neg(x -> x", "x -> x"})
    EXPECT_THROW(RuleSet(std::vector<Rule>{{text}}, find), InternalError) << text;
  EXPECT_THROW(run({{"add(x, y) -> add(y, x)"}}, node("add", {x, y})), InternalError);
}

}  // namespace
}  // namespace brasa::ir
