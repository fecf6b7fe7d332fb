#include <brasa/brasa.h>
#include <brasa/call.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "ops/builder.h"
#include "ops/families.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "signature.h"

namespace brasa::ops {
void add_toys(Table& t);
}

// What follows from the row.
namespace brasa {
namespace {

using ir::Value;

Tensor cube(const Tensor& x, double scale) { return call("aten::toy_cube", {x, scale})[0]; }

void expect_close(const Tensor& a, const Tensor& b) { EXPECT_TRUE(allclose(a, b, 1e-6, 1e-7)) << a << "\n" << b; }

TEST(ToyRow, StandsInTheRegistry) {
  EXPECT_TRUE(has_operator("aten::toy_cube"));
  const ops::Row& row = ops::at("aten::toy_cube");
  ASSERT_EQ(row.schema.params.size(), 2u);
  EXPECT_EQ(row.schema.params[1].name, "scale");
  EXPECT_EQ(row.doc, "scale * x³.");
}

TEST(ToyRow, IsAFunctionAndAMethodInCpp) {
  auto all = gen::signatures(ops::table());
  auto it = std::find_if(all.begin(), all.end(), [](const auto& s) { return s.name == "toy_cube"; });
  ASSERT_NE(it, all.end());
  EXPECT_EQ(it->self, 0);
  ASSERT_EQ(it->params.size(), 2u);
  EXPECT_EQ(it->params[0].type, "const Tensor&");
  EXPECT_EQ(it->params[1].type, "const Scalar&");
  EXPECT_EQ(it->params[1].default_value, "1");
}

// What brasa-gen writes for the row is compiled into this program.
TEST(ToyRow, IsCalledAsAFunctionAndAMethod) {
  Tensor x = tensor({3.0, -2.0}, kDouble);
  expect_close(toy_cube(x), x * x * x);
  expect_close(toy_cube(x, 0.5), x * x * x * 0.5);
  expect_close(x.toy_cube(2), x * x * x * 2);
  Tensor out = empty_like(x), y = x.clone();
  expect_close(toy_cube_out(out, x, 0.5), cube(x, 0.5));
  EXPECT_TRUE(y.toy_cube_(0.5).is_same(y));
  expect_close(y, out);
}

TEST(ToyRow, RunsInTheInterpreter) {
  ir::Graph graph;
  ir::Facts facts;
  {
    ops::Builder builder(graph, facts);
    Value x = graph.add_input({DType::Float64, {2}, false});
    graph.add_output(builder.record(ops::at("aten::toy_cube"), {x, 0.5})[0]);
  }
  ops::Array x = ops::make_array(DType::Float64, {2});
  ops::set(x, 0, 3);
  ops::set(x, 1, -2);
  ops::Array y = ops::evaluate(graph, std::span(&x, 1))[0];
  EXPECT_EQ(ops::get(y, 0), 13.5);
  EXPECT_EQ(ops::get(y, 1), -4);
}

TEST(ToyRow, HasAllDerivatives) {
  Tensor x = tensor({3.0, -2.0}, kDouble).requires_grad_();
  Tensor first = autograd::grad({cube(x, 0.5).sum()}, {x}, {}, true, true)[0];
  expect_close(first, 1.5 * x * x);
  Tensor second = autograd::grad({first.sum()}, {x})[0];
  expect_close(second, 3 * x);
}

TEST(ToyRow, RunsEagerAndCompiled) {
  for (DType type : {kFloat, kDouble, kBFloat16, kInt}) {
    Tensor x = arange(6, type).reshape({2, 3}).transpose(0, 1);
    Tensor expected = x * x * x * 2;
    auto f = [](const Tensor& x) { return call("aten::toy_cube", {x, 2})[0]; };
    EXPECT_TRUE(f(x).equal(expected)) << f(x);
    EXPECT_TRUE(brasa::compile(f)(x).equal(expected));
  }
}

TEST(ToyRow, ComesTooLateOnceTheTableIsInUse) {
  ops::table();
  EXPECT_THROW(ops::add_family(ops::add_toys), Error);
}

}  // namespace
}  // namespace brasa
