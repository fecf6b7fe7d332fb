#include "ir/legality.h"

#include <brasa/error.h>
#include <gtest/gtest.h>

#include "ir/schema.h"

namespace brasa::ir {
namespace {

struct TestOp : Op {
  TestOp(std::string_view s, Level level) : level_(level) { schema = parse_schema(s); }
  bool legal_at(Level l) const override { return l == level_; }
  std::optional<std::vector<Type>> infer(const Args& args) const override {
    return std::vector<Type>{type_of(args[0].get<Value>())};
  }
  Level level_;
};

const TestOp& neg() {
  static const TestOp op("t::neg(Tensor x) -> Tensor", Level::Primitives);
  return op;
}

const Type kFloat{DType::Float32, {4}, false};

void expect_illegal(const Graph& g, const std::string& why) {
  try {
    check_legal(g);
    FAIL() << "expected: " << why;
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("return"), std::string::npos) << "the graph's text is missing";
  }
}

TEST(Legality, AGoodGraphPasses) {
  Graph g(Level::Primitives);
  Expr s = Expr::size(0);
  Value x = g.add_input({DType::Float32, {s}, false}, "x", {Expr::size(1)});
  g.add_output(g.add(&neg(), {x}, {{DType::Float32, {s}, false}})->out(), 0);
  EXPECT_NO_THROW(check_legal(g));
}

TEST(Legality, OpsBelongToLevels) {
  Graph g(Level::Operators);
  Value x = g.add_input(kFloat);
  g.add_output(g.add(&neg(), {x}, {kFloat})->out());
  expect_illegal(g, "do not hold t::neg");
}

TEST(Legality, TypesAreThoseOfTheRule) {
  Graph g(Level::Primitives);
  Value x = g.add_input(kFloat);
  g.add_output(g.add(&neg(), {x}, {{DType::Float32, {5}, false}})->out());
  expect_illegal(g, "its result is f32[4]");
  // A size that a fact makes equal may be spelled another way.
  Graph other(Level::Primitives);
  Expr s = Expr::size(0);
  Value y = other.add_input({DType::Float32, {s}, false});
  other.add_output(other.add(&neg(), {y}, {kFloat})->out());
  EXPECT_NO_THROW(check_legal(other));
}

TEST(Legality, ArgumentsFollowTheSchema) {
  Graph g(Level::Primitives);
  Value x = g.add_input(kFloat);
  g.add_output(g.add(&neg(), {x, x}, {kFloat})->out());
  expect_illegal(g, "takes 1 arguments");
}

TEST(Legality, SymbolsAreShownByInputs) {
  Graph g(Level::Primitives);
  Value x = g.add_input(kFloat);
  g.add_output(g.add(&neg(), {x}, {{DType::Float32, {Expr::size(3)}, false}})->out());
  expect_illegal(g, "no input shows s3");
}

TEST(Legality, OutputsFitTheirPlaces) {
  Graph g(Level::Primitives);
  Value x = g.add_input(kFloat);
  g.add_input({DType::Int64, {4}, false});
  g.add_output(x, 1);
  expect_illegal(g, "does not fit into input 1");
  g.outputs() = {{x, 7, ""}};
  expect_illegal(g, "there is no input 7");
  g.outputs().clear();
  g.add_check(x, "never");
  expect_illegal(g, "a check is one bool");
}

}  // namespace
}  // namespace brasa::ir
