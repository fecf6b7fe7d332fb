#include "transforms/vjp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "ir/text.h"
#include "ops/algebra.h"
#include "ops/decompose.h"
#include "ops/interpreter.h"
#include "transforms/derived.h"
#include "transforms/partition.h"

namespace brasa::transforms {
namespace {

using ir::Value;
using ops::Array;
using namespace ops;  // NOLINT: the algebra on Values

Array doubles(std::vector<int64_t> shape, std::vector<double> values) {
  Array a{DType::Float64, std::move(shape), {}};
  a.data.resize(values.size() * sizeof(double));
  std::memcpy(a.data.data(), values.data(), a.data.size());
  return a;
}
double at(const Array& a, size_t i) {
  double v;
  std::memcpy(&v, a.data.data() + i * sizeof(double), sizeof v);
  return v;
}

// y = sum(tanh(a b) c, over rows): contraction, point-wise, broadcast and reduction.
std::unique_ptr<ir::Graph> example(ir::Facts& facts) {
  auto g = std::make_unique<ir::Graph>(ir::Level::Primitives);
  ops::Builder builder(*g, facts);
  Value a = g->add_input({DType::Float64, {2, 3}, false}, "a");
  Value b = g->add_input({DType::Float64, {3, 2}, false}, "b");
  Value c = g->add_input({DType::Float64, {2}, false}, "c");
  g->add_output(ops::sum(ops::tanh(ops::matmul2(a, b)) * c, {0}));
  return g;
}

std::vector<Array> example_inputs() {
  return {doubles({2, 3}, {.1, -.2, .3, .4, .5, -.6}), doubles({3, 2}, {.7, .2, -.3, .9, .5, .1}),
          doubles({2}, {1.5, -2})};
}

TEST(Joint, GradientsAgreeWithFiniteDifferences) {
  ir::Facts facts;
  auto g = example(facts);
  JointGraph j = joint(*g, facts, {true, true, true}, {true});
  std::vector<Array> in = example_inputs();
  std::vector<double> ct = {0.3, -0.8};
  in.push_back(doubles({2}, ct));
  std::vector<Array> out = ops::evaluate(*j.graph, in);
  for (int k = 0; k < 3; ++k) {
    const Array& grad = out[j.gradient_of[k]];
    for (int64_t i = 0; i < grad.numel(); ++i) {
      double sides[2];
      for (int s = 0; s < 2; ++s) {
        std::vector<Array> moved = example_inputs();
        double v = at(moved[k], i) + (s ? -1e-6 : 1e-6);
        std::memcpy(moved[k].data.data() + i * sizeof v, &v, sizeof v);
        Array y = ops::evaluate(*g, moved)[0];
        sides[s] = ct[0] * at(y, 0) + ct[1] * at(y, 1);
      }
      EXPECT_NEAR(at(grad, i), (sides[0] - sides[1]) / 2e-6, 1e-8) << k << " " << i;
    }
  }
}

std::vector<ir::Value> gradients_of(const JointGraph& joint, size_t outputs) {
  std::vector<ir::Value> out;
  for (size_t i = outputs; i < joint.graph->outputs().size(); ++i) out.push_back(joint.graph->outputs()[i].value);
  return out;
}

TEST(Partition, HalvesGiveTheJointGraphsValues) {
  ir::Facts facts;
  auto g = example(facts);
  JointGraph j = joint(*g, facts, {true, true, true}, {true});
  Partition p = partition(*j.graph, 3, 1, facts);
  std::vector<Array> in = example_inputs();
  std::vector<Array> forward = ops::evaluate(*p.forward, in);
  in.push_back(doubles({2}, {0.3, -0.8}));
  BackwardGraph b = backward_graph(*j.graph, p.values, gradients_of(j, 1));
  std::vector<Array> second;
  for (size_t i : b.saved) {
    const Saved& s = p.saved[i];
    second.push_back(s.from == Saved::From::Input ? in[s.index] : forward[s.index]);
  }
  for (size_t i : b.inputs) second.push_back(in[i]);
  ASSERT_TRUE(b.sizes.empty());
  std::vector<Array> backward = ops::evaluate(*b.graph, second);
  std::vector<Array> whole = ops::evaluate(*j.graph, in);
  ASSERT_EQ(backward.size() + 1, whole.size());
  for (size_t k = 0; k < backward.size(); ++k) EXPECT_EQ(backward[k].data, whole[k + 1].data);
  // The product's result is saved; tanh of it is not worth a second buffer, and a and b are free.
  int intermediates = 0;
  for (const Saved& s : p.saved) intermediates += s.from == Saved::From::Intermediate;
  EXPECT_EQ(intermediates, 1) << ir::print(*b.graph);
  EXPECT_EQ(b.saved.size(), p.saved.size());
  EXPECT_EQ(b.inputs, std::vector<size_t>{3});  // the cotangent
}

TEST(Partition, SizesThatNoTensorShowsBecomeInputs) {
  ir::Facts facts({5});
  ir::Graph g(ir::Level::Primitives);
  {
    ops::Builder builder(g, facts);
    g.add_output(ops::sum(g.add_input({DType::Float64, {ir::Expr::size(0)}, false}), {0}));
  }
  JointGraph j = joint(g, facts, {true}, {true});
  Partition p = partition(*j.graph, 1, 1, facts);
  EXPECT_TRUE(p.saved.empty());
  BackwardGraph b = backward_graph(*j.graph, p.values, gradients_of(j, 1));
  EXPECT_EQ(b.sizes, std::vector<ir::Expr>{ir::Expr::size(0)});
  EXPECT_EQ(b.graph->inputs().size(), 2u);
}

TEST(Partition, AGradientThatIsOneOfSeveralResults) {
  JointGraph j;
  j.graph = ir::parse(R"(graph primitives "" {
  %0 = input: f64[3] ""
  %1 = input: f64[3] ""
  %2 = prim::sort(%0, dim=0, descending=false, first=0, count=3): (f64[3], i64[3])
  %3 = prim::neg(%0): f64[3]
  return %3, %2
})",
                      find_row);
  j.gradient_of = {1};
  Partition p = partition(*j.graph, 1, 1, ir::Facts());
  ASSERT_EQ(p.saved.size(), 1u);
  BackwardGraph b = backward_graph(*j.graph, p.values, gradients_of(j, 1));
  EXPECT_EQ(ir::type_of(b.graph->outputs()[0].value).dtype, DType::Float64);
}

TEST(Derived, RowsAreFoundByTheirNames) {
  const ops::Row& row = vjp_row(ops::at("prim::tanh"), {true}, {true});
  EXPECT_EQ(row.name(), "vjp::prim::tanh/1/1");
  EXPECT_EQ(find_row(row.name()), &row);
  const ops::Row& twice = vjp_row(row, {true, true}, {true});
  EXPECT_EQ(find_row(twice.name()), &twice);
  EXPECT_EQ(find_row("vjp::prim::nothing/1/1"), nullptr);
  EXPECT_EQ(find_row("vjp::"), nullptr);
}

TEST(Derived, SecondDerivativeOfTanh) {
  ir::Facts facts;
  ir::Graph g;
  {
    ops::Builder builder(g, facts);
    Value x = g.add_input({DType::Float64, {1}, false}), ct = g.add_input({DType::Float64, {1}, false});
    const ops::Row& first = vjp_row(ops::at("prim::tanh"), {true}, {true});
    const ops::Row& second = vjp_row(first, {true, false}, {true});
    std::vector<Value> none(1), cts{ct};
    g.add_output(builder.record(second, {x, none, cts, none, cts})[0]);
  }
  double x = 0.4, t = std::tanh(x);
  std::vector<Array> in = {doubles({1}, {x}), doubles({1}, {1})};
  EXPECT_NEAR(at(ops::evaluate(g, in)[0], 0), -2 * t * (1 - t * t), 1e-12);
}

// A result that is given is what the derivative reads, and where the derivative's derivative goes.
TEST(Derived, SecondDerivativeByTheResult) {
  ir::Facts facts;
  ir::Graph g;
  {
    ops::Builder builder(g, facts);
    Value x = g.add_input({DType::Float64, {1}, false}), y = g.add_input({DType::Float64, {1}, false});
    Value ct = g.add_input({DType::Float64, {1}, false});
    const ops::Row& first = vjp_row(ops::at("prim::tanh"), {true}, {true});
    std::vector<Value> none(1), results{y}, cts{ct};
    for (Value v : builder.record(vjp_row(first, {true, true, false}, {true}), {x, results, cts, none, cts}))
      g.add_output(v);
  }
  double t = std::tanh(0.4);
  std::vector<Array> in = {doubles({1}, {0.4}), doubles({1}, {t}), doubles({1}, {1})};
  std::vector<Array> out = ops::evaluate(g, in);
  EXPECT_EQ(at(out[0], 0), 0);
  EXPECT_NEAR(at(out[1], 0), -2 * t, 1e-12);
}

// Windows that lie beside each other are read without a reshape between sizes that nothing says are equal.
TEST(Derived, CotangentsHaveTheSizesOfResults) {
  ir::Facts facts({12, 7, 3});
  ir::Graph g;
  {
    ops::Builder builder(g, facts);
    Value x = g.add_input({DType::Float64, {ir::Expr::size(0), ir::Expr::size(1)}, false});
    Value ct = g.add_input({DType::Float64, {ir::Expr::size(2), ir::Expr::size(1), 4}, false});
    const ops::Row& row = vjp_row(ops::at("prim::window"), {true}, {true});
    g.add_output(builder.record(row, {x, ir::Expr(0), ir::Expr(4), ir::Expr(4), ir::Expr(1), std::vector<Value>(1),
                                      std::vector<Value>{ct}})[0]);
    ops::decompose(g, facts);
  }
  EXPECT_EQ(str(facts.known(ir::Expr::size(2))), "s0 // 4");
}

TEST(Derived, PutWritesThroughAView) {
  ir::Facts facts;
  ir::Graph g;
  {
    ops::Builder builder(g, facts);
    Value x = g.add_input({DType::Float64, {2, 3}, false}), v = g.add_input({DType::Float64, {2, 2}, false});
    const ops::Row& put = put_row(ops::at("prim::slice"), 0);
    auto e = [](std::vector<ir::Expr> s) { return ir::Arg(std::move(s)); };
    g.add_output(builder.record(put, {x, e({0, 0}), e({2, 2}), e({1, 2}), v})[0]);
  }
  std::vector<Array> in = {doubles({2, 3}, {1, 2, 3, 4, 5, 6}), doubles({2, 2}, {10, 20, 30, 40})};
  EXPECT_EQ(ops::evaluate(g, in)[0].data, doubles({2, 3}, {10, 2, 20, 30, 5, 40}).data);
}

}  // namespace
}  // namespace brasa::transforms
