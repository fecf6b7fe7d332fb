// Graphs that fail become small ones, and programs that show it.
#include <brasa/backend.h>
#include <brasa/minify.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "values.h"

namespace brasa {
namespace {

//// A backend that is wrong where there is a `tanh` and an input above 1, and which has no `atan`.
const char* broken_backend() {
  static bool once = [] {
    register_backend("broken", [](const CapturedGraph& graph) -> GraphFunction {
      std::vector<std::string> operators = graph.operators();
      auto has = [&](const char* name) {
        return std::find(operators.begin(), operators.end(), name) != operators.end();
      };
      if (has("aten::atan")) throw Error("no atan here");
      GraphFunction right = graph.compile("interpreter");
      if (!has("aten::tanh")) return right;
      return [right](const std::vector<Tensor>& in) {
        std::vector<Tensor> out = right(in);
        for (const Tensor& t : in)
          if (t.abs().max().item<float>() > 1) out.back() = out.back() + 1;
        return out;
      };
    });
    return true;
  }();
  static_cast<void>(once);
  return "broken";
}

template <class F>
std::string graph_of(F f, const Tensor& x) {
  auto g = compile(f, {.backend = "interpreter"});
  g(x);
  return g.explain().graphs.at(0).operators;
}

Tensor long_chain(const Tensor& x) {
  Tensor y = (x * 2 + 1).sin(), z = (x.exp() * y).cos() * 3;
  return z.tanh().sum() + y.sum(1);
}

TEST(Minify, WhatIsRight) {
  std::string graph = graph_of(long_chain, numbers({4, 4}));
  EXPECT_EQ(check_graph(graph), "");
  EXPECT_EQ(check_graph(graph, {.backend = "aot_eager", .seed = 3}), "");
  EXPECT_THROW(minify(graph), Error);
  EXPECT_THROW(check_graph("graph"), Error);
  EXPECT_THROW(check_graph(graph, {.inputs = {numbers({3})}}), Error);
}

TEST(Minify, ADifference) {
  GraphCheck check{.backend = broken_backend()};
  std::string graph = graph_of(long_chain, numbers({4, 4}));
  EXPECT_NE(check_graph(graph, check).find("differs: by 1"), std::string::npos) << check_graph(graph, check);
  Minified m = minify(graph, check);
  EXPECT_EQ(m.operators, 1) << m.graph;
  EXPECT_NE(m.graph.find("aten::tanh(%0)"), std::string::npos) << m.graph;
  EXPECT_EQ(check_graph(m.graph, m.check), m.failure);
  std::string program = reproducer(m);
  EXPECT_NE(program.find("check.backend = \"broken\""), std::string::npos);
  EXPECT_NE(program.find(m.graph), std::string::npos);
}

TEST(Minify, AnError) {
  GraphCheck check{.backend = broken_backend()};
  Minified m = minify(
      graph_of([](const Tensor& x) { return (x + 1).relu() * (x.sin().atan() - x).tanh(); }, numbers({3})), check);
  EXPECT_EQ(m.operators, 1) << m.graph;
  EXPECT_NE(m.graph.find("aten::atan"), std::string::npos) << m.graph;
  EXPECT_NE(m.failure.find("no atan here"), std::string::npos) << m.failure;
}

// Inputs that matter stand in the program, as they lie in memory.
TEST(Minify, InputsOfTheCall) {
  GraphCheck check{.backend = broken_backend(), .inputs = {(numbers({3, 2}) * 100).t().clone()}};
  std::string graph = graph_of([](const Tensor& x) { return (x / 1000).exp() + (x * 0.5).tanh(); }, check.inputs[0]);
  Minified m = minify(graph, check);
  EXPECT_EQ(m.operators, 1) << m.graph;
  if (m.inputs.empty()) {
    EXPECT_NE(check_graph(m.graph, m.check), "");
  } else {
    EXPECT_NE(reproducer(m).find("as_strided({"), std::string::npos) << reproducer(m);
  }
}

TEST(Minify, SizesThatAreSymbols) {
  auto f = compile([](const Tensor& x) { return (x * x).tanh() + 1; }, {.backend = "interpreter", .dynamic = true});
  f(numbers({5, 7}).clone());
  std::string graph = f.explain().graphs.at(0).operators;
  EXPECT_THROW(check_graph(graph), Error);
  EXPECT_EQ(check_graph(graph, {.symbols = {3, 4}}), "");
  EXPECT_EQ(minify(graph, {.backend = broken_backend(), .symbols = {30, 4}}).operators, 1);
}

TEST(Minify, OfAProgramThatRuns) {
  std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("brasa_minify_" + std::to_string(::getpid()));
  setenv("BRASA_MINIFY", folder.c_str(), 1);
  Tensor scale = numbers({4}).clone();
  auto f = compile(
      [&](const Tensor& x) {
        scale.add_(1);
        return (x + scale).tanh().sum(0);
      },
      {.backend = broken_backend()});
  auto fine = compile(long_chain);
  unsetenv("BRASA_MINIFY");
  for (int i = 0; i < 3; ++i) f(numbers({4, 4}) * 10);
  for (int64_t n : {3, 4, 5}) fine(numbers({n, n}));
  expect_close(scale, numbers({4}) + 3);
  ASSERT_TRUE(std::filesystem::exists(folder / "graph_1.cpp"));
  EXPECT_FALSE(std::filesystem::exists(folder / "graph_2.txt"));
  std::ifstream file(folder / "graph_1.cpp");
  std::string program{std::istreambuf_iterator<char>(file), {}};
  EXPECT_NE(program.find("aten::tanh"), std::string::npos) << program;
  EXPECT_EQ(program.find("aten::mul"), std::string::npos) << program;
  std::filesystem::remove_all(folder);
}

TEST(TraceNan, TheFirstOperatorIsNamed) {
  auto body = [](const Tensor& x) { return (x.exp() + 1).sum() + (x - 2).log().mean() * 3; };
  auto f = compile(body, {.options = {{"trace_nan", "true"}}});
  expect_close(f(numbers({4}) + 5), body(numbers({4}) + 5));
  auto what = [](auto&& g) -> std::string {
    try {
      g();
    } catch (const Error& e) {
      return e.what();
    }
    return "nothing";
  };
  std::string error = what([&] { f(numbers({4})); });
  EXPECT_NE(error.find("NaN comes first from"), std::string::npos) << error;
  EXPECT_NE(error.find("aten::log("), std::string::npos) << error;
  // A NaN that comes in is nobody's.
  EXPECT_TRUE(f(full({4}, std::nan(""))).isnan().item<bool>());
  // In the backward pass, too.
  Tensor x = zeros({3}).set_requires_grad(true);
  auto loss = compile([](const Tensor& t) { return (t.sqrt() * 0).sum(); }, {.options = {{"trace_nan", "true"}}});
  error = what([&] { loss(x).backward(); });
  EXPECT_NE(error.find("NaN comes first from"), std::string::npos) << error;
  EXPECT_NE(what([&] { compile(body, {.options = {{"tracenan", "true"}}}); }).find("did you mean 'trace_nan'"),
            std::string::npos);
}

}  // namespace
}  // namespace brasa
