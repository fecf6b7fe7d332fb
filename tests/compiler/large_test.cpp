#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <functional>

#include "check.h"
#include "ops/builder.h"
#include "small_stack.h"

// Graphs of many nodes: on a thread with little stack, and in time that grows as they do. BRASA_LARGE_NODES gives other numbers of nodes.
namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using test::on_small_stack;
using ops::operator+;
using ops::operator*;
using Values = std::vector<Value>;
namespace prim = ops::prim;

Values chain(const Values& v, int nodes) {
  Value y = v[0];
  for (int i = 0; i < nodes / 2; ++i) y = y * v[1] + v[0];
  return {y};
}
Values views(const Values& v, int nodes) {
  Value y = v[0];
  for (int i = 0; i < nodes; ++i) y = i % 2 ? prim::reverse(y, {0}) : prim::transpose(y, {1, 0});
  return {y};
}
// Each a kernel of its own.
Value row_maxima(Value y) { return y * prim::broadcast(prim::reduce(y, {1}, "max"), ops::shape_of(y), {0}); }
Values maxima(const Values& v, int nodes) {
  Value y = v[0];
  for (int i = 0; i < nodes / 3; ++i) y = row_maxima(y);
  return {y};
}
// As a backward pass does: what the first half makes is read by the second, last one first.
Values kept(const Values& v, int nodes) {
  Values made{v[0]};
  for (int i = 0; i < nodes / 7; ++i) made.push_back(row_maxima(made.back()));
  Value y = made.back();
  for (size_t i = made.size(); i-- > 0;) y = row_maxima(y * made[i]);
  return {y};
}
Values results(const Values& v, int nodes) {
  Values out{v[0]};
  for (int i = 0; i < nodes / 3; ++i) out.push_back(row_maxima(out.back()));
  return out;
}
// Each index is checked.
Values indices(const Values& v, int nodes) {
  Value y = v[0];
  for (int i = 0; i < nodes / 8; ++i)
    y = ops::call("aten::index_select", {y, ir::Expr(0), prim::convert(prim::reduce(y, {1}, "max"), DType::Int64)});
  return {y};
}

constexpr struct {
  const char* name;
  Values (*build)(const Values& v, int nodes);
} kShapes[] = {{"chain", chain}, {"views", views},     {"maxima", maxima},
               {"kept", kept},   {"results", results}, {"indices", indices}};

const std::vector<In> kInputs = {{DType::Float32, {4, 4}, 0.4, 0.6}, {DType::Float32, {4, 4}, 0.4, 0.6}};

// `overwrite`: each result goes into an input of its own.
double seconds_to_compile(Values (*build)(const Values&, int), int nodes, bool symbolic, bool overwrite) {
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts({5, 4});
  ir::Shape sizes{5, 4};
  if (symbolic) sizes = {ir::Expr::size(0), ir::Expr::size(1)};
  Values inputs;
  for (const In& in : kInputs) inputs.push_back(graph.add_input({in.dtype, sizes}));
  {
    ops::Builder builder(graph, facts);
    for (Value v : build(inputs, nodes)) {
      if (overwrite) graph.add_input(type_of(v));
      graph.add_output(v, overwrite ? static_cast<int>(graph.inputs().size()) - 1 : -1);
    }
  }
  auto start = std::chrono::steady_clock::now();
  on_small_stack([&] { compile(graph, facts, {}); });
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(LargeGraphs, AreRightOnASmallStack) {
  for (const auto& shape : kShapes)
    if (shape.build != indices)  // results alone are compared
      on_small_stack([&] { check(kInputs, [&](const Values& v) { return shape.build(v, 900); }); });
}

TEST(LargeGraphs, CompileInTimeThatGrowsWithThem) {
  const char* given = std::getenv("BRASA_LARGE_NODES");
  int nodes = given ? std::atoi(given) : 3000;
  for (const auto& shape : kShapes)
    for (bool symbolic : {false, true})
      for (bool overwrite : {false, true}) {
        double seconds = seconds_to_compile(shape.build, nodes, symbolic, overwrite);
        rusage usage;
        getrusage(RUSAGE_SELF, &usage);
        std::cout << shape.name << (symbolic ? ", symbolic" : "") << (overwrite ? ", in place" : "") << ": " << nodes
                  << " nodes, " << seconds * 1e3 / nodes << " ms a node, " << usage.ru_maxrss / 1024
                  << " MiB at most\n";
        // Instrumented builds and busy machines take longer than 3 ms.
        EXPECT_TRUE(given || seconds < nodes * 0.02) << shape.name;
      }
}

}  // namespace
}  // namespace brasa::compiler
