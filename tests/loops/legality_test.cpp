#include <gtest/gtest.h>

#include "compiler/loops/builder.h"
#include "compiler/loops/linearize.h"
#include "ir/text.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

using ir::Expr;
using ir::Value;

struct Draft {
  ir::Graph graph{ir::Level::Loops};
  LoopBuilder b{graph};
  Value x = b.buffer(DType::Float32, 64), out = b.buffer(DType::Float32, 64);
};

void expect_illegal(const Draft& d, const char* message) {
  try {
    linearize(d.graph);
    ADD_FAILURE() << "accepted, though: " << message;
  } catch (const InternalError& e) {
    EXPECT_NE(std::string(e.what()).find(message), std::string::npos) << e.what();
  }
}

TEST(LoopLegality, UndeclaredLoop) {
  Draft d;
  d.b.store(d.out, Expr::range(9, 4), d.b.load(d.x, Expr::range(9, 4)));
  expect_illegal(d, "no loop::for for r9");
}

TEST(LoopLegality, FlattenedLoopsComeFirst) {
  Draft d;
  d.b.loop("serial", 4);
  d.b.loop("parallel", 4);
  expect_illegal(d, "comes after another kind");
}

TEST(LoopLegality, ReducedLoopsAreInnermost) {
  Draft d;
  Expr k = d.b.loop("serial", 8), j = d.b.loop("serial", 8);
  d.b.store(d.out, j, d.b.reduce(d.b.load(d.x, k * 8 + j), {k}, "add"));
  expect_illegal(d, "not its innermost");
}

TEST(LoopLegality, ParallelLoopsAreNotReduced) {
  Draft d;
  Expr p = d.b.loop("parallel", 8);
  d.b.store(d.out, 0, d.b.reduce(d.b.load(d.x, p), {p}, "add"));
  expect_illegal(d, "cannot be reduced");
}

TEST(LoopLegality, OneVectorLoop) {
  Draft d;
  Expr i = d.b.loop("vector", 8, 8), j = d.b.loop("vector", 8, 8);
  d.b.store(d.out, i * 8 + j, d.b.load(d.x, i * 8 + j));
  expect_illegal(d, "two vector loops");
}

TEST(LoopLegality, StoredDtype) {
  Draft d;
  d.b.store(d.out, 0, d.b.constant(1.0, DType::Float64));
  expect_illegal(d, "another dtype");
}

TEST(LoopLegality, CombiningStoresInParallelLoops) {
  Draft d;
  d.b.loop("parallel", 8);
  d.b.store(d.out, 0, d.b.constant(1.0, DType::Float32), {}, "add");
  expect_illegal(d, "every flattened loop");
}

TEST(LoopText, RoundTrip) {
  Draft d;
  Expr n = Expr::size(0), p = d.b.loop("parallel", ceildiv(n, 16)),
       r = d.b.loop("vector", min(Expr(16), n - p * 16), 16, 2);
  Value v = d.b.load(d.x, p * 16 + r);
  d.b.store(d.out, p * 16 + r, d.b.op("tanh", {v}));
  std::string text = ir::print(d.graph);
  EXPECT_EQ(ir::print(*ir::parse(text, find_loop_level_op)), text);
  EXPECT_EQ(print(linearize(*ir::parse(text, find_loop_level_op))), print(linearize(d.graph)));
}

// What does not depend on the inner loop is computed before it.
TEST(Linearize, Hoists) {
  Draft d;
  Expr i = d.b.loop("serial", 8), j = d.b.loop("serial", 8);
  Value row = d.b.op("exp", {d.b.load(d.x, i)});
  d.b.store(d.out, i * 8 + j, d.b.op("mul", {row, d.b.load(d.x, j)}));
  Nest nest = linearize(d.graph);
  ASSERT_EQ(nest.body.size(), 1u);
  const Loop& outer = *nest.body[0].loop;
  ASSERT_EQ(outer.body.size(), 1u);
  ASSERT_EQ(outer.body[0].loop->hoisted.size(), 1u);
  EXPECT_EQ(outer.body[0].loop->hoisted[0], row.node);
}

// A stage is outside of the loop that a shorter store is in: the loop comes once, behind the stage.
TEST(Linearize, WhatIsOutsideOfALoopDoesNotTearIt) {
  Nest nest = linearize(*ir::parse(R"graph(graph loops "" {
  %0 = input: f64[6] ""
  %1 = input: f64[36] ""
  %2 = input: f64[6] ""
  %3 = input: f64[36] ""
  %4 = loop::for(range=r0<6>, kind="serial"): bool[]
  %5 = loop::for(range=r1<2>, kind="serial"): bool[]
  %6 = loop::for(range=r2<3>, kind="serial"): bool[]
  %7 = loop::load(%0, index=r1*3 + r2): f64[]
  %8 = loop::reduce([%7], ranges=[r1, r2], combiner="add"): f64[]
  %9 = loop::store(%2, index=r0, value=%8): bool[]
  %10 = prim::mul(%7, %8): f64[]
  %11 = loop::stage(%10, ranges=[r1, r2], space="local"): f64[6]
  %12 = loop::load(%11, index=r1*3 + r2): f64[]
  %13 = loop::load(%1, index=r0*6 + r1*3 + r2): f64[]
  %14 = prim::mul(%13, %7): f64[]
  %15 = loop::reduce([%14], ranges=[r1, r2], combiner="add"): f64[]
  %16 = prim::mul(%12, %15): f64[]
  %17 = loop::store(%3, index=r0*6 + r1*3 + r2, value=%16): bool[]
  return
})graph",
                                   find_loop_level_op));
  ASSERT_FALSE(nest.body.empty());
  EXPECT_EQ(
      std::count_if(nest.body.begin(), nest.body.end(), [](const Item& i) { return i.loop && i.loop->loop == 0; }), 1);
}

}  // namespace
}  // namespace brasa::compiler
