// Backends that a program registers.
#include <brasa/backend.h>

#include "values.h"

namespace brasa {
namespace {

TEST(RegisteredBackend, SeesTheGraphAndFallsBack) {
  static std::vector<std::string> texts, operators;
  static std::string level;
  register_backend("watching", [](const CapturedGraph& graph) {
    texts.push_back(graph.text());
    operators = graph.operators();
    level = graph.options().options.at("level");
    EXPECT_EQ(graph.symbolic(), texts.size() > 1);
    return graph.compile(texts.size() > 1 ? "inductor" : "eager");
  });
  auto names = list_backends();
  EXPECT_NE(std::find(names.begin(), names.end(), "watching"), names.end());

  auto f = [](const Tensor& x, const Tensor& log) {
    log.add_(x.sum());
    return std::vector<Tensor>{x.tanh() * log, x.sub(x.sin(), 0.25)};
  };
  auto g = compile(f, {.backend = "watching", .options = {{"level", "7"}}});
  Tensor a = zeros({2}), b = zeros({2});
  for (int64_t n : {3, 4, 6}) {
    Tensor x = numbers({n, 2}).clone();
    auto got = g(x, a), want = f(x, b);
    for (size_t i = 0; i < 2; ++i) expect_close(got[i], want[i]);
    expect_close(a, b);
  }
  EXPECT_EQ(texts.size(), 2u);
  EXPECT_EQ(level, "7");
  EXPECT_NE(texts[0].find("aten::tanh"), std::string::npos) << texts[0];
  EXPECT_NE(std::find(operators.begin(), operators.end(), "aten::tanh"), operators.end());
}

TEST(RegisteredBackend, AFunctionOfTheProgramsOwn) {
  register_backend("doubling", [](const CapturedGraph& graph) -> GraphFunction {
    if (graph.symbolic()) throw std::runtime_error("sizes must be known");
    return [](const std::vector<Tensor>& inputs) { return std::vector<Tensor>{inputs[0] * 2}; };
  });
  auto g = compile([](const Tensor& x) { return x.exp(); }, {.backend = "doubling"});
  for (int64_t n : {3, 4, 5}) expect_close(g(numbers({n}).clone()), numbers({n}) * 2);
}

// What a backend computes while it makes its function is computed at once, and no part of what it compiles.
TEST(RegisteredBackend, MayComputeWhileItCompiles) {
  register_backend("prepares", [](const CapturedGraph& graph) -> GraphFunction {
    Tensor one = ones({3}) * 1;
    return [one, f = graph.compile("inductor")](const std::vector<Tensor>& in) {
      return std::vector<Tensor>{f(in).at(0) + one};
    };
  });
  auto g = compile([](const Tensor& x) { return x.sin(); }, {.backend = "prepares"});
  Tensor x = numbers({3});
  for (int i = 0; i < 3; ++i) expect_close(g(x), x.sin() + 1);
}

TEST(RegisteredBackend, WrongOnes) {
  EXPECT_THROW(register_backend("inductor", [](const CapturedGraph& g) { return g.compile(); }), Error);
  EXPECT_THROW(compile([](Tensor x) { return x; }, {.options = {{"speed", "high"}}}), Error);
  EXPECT_THROW(compile([](Tensor x) { return x; }, {.backend = "eager", .options = {{"numbers", "strict"}}}), Error);
  register_backend("short", [](const CapturedGraph&) {
    return GraphFunction([](const std::vector<Tensor>&) { return std::vector<Tensor>(); });
  });
  auto g = compile([](const Tensor& x) { return x + 1; }, {.backend = "short"});
  try {
    g(numbers({2}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("1 outputs"), std::string::npos) << e.what();
  }
}

TEST(RegisteredBackend, StrictNumbers) {
  auto g = compile([](const Tensor& x) { return (x * x + 1).sum(); }, {.options = {{"numbers", "strict"}}});
  expect_close(g(numbers({9})), (numbers({9}) * numbers({9}) + 1).sum());
}

TEST(RegisteredBackend, FastNumbersDivideByMultiplying) {
  auto third = [](const Tensor& x) { return x / 3; };
  Tensor x = arange(1, 1000).to(kFloat);
  EXPECT_TRUE(compile(third, {.options = {{"numbers", "fast"}}})(x).equal(x * (1.0F / 3)));
  EXPECT_TRUE(compile(third)(x).equal(third(x)));
}

}  // namespace
}  // namespace brasa
