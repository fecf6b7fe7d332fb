// What compile can be told, and what is told to all compiled functions.
#include <brasa/autograd.h>
#include <brasa/backend.h>
#include <brasa/nn.h>

#include <random>

#include "values.h"

namespace brasa {
namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "none";
}

void expect_error(const std::function<void()>& f, const std::string& part) {
  EXPECT_NE(error_of(f).find(part), std::string::npos) << error_of(f);
}

Tensor doubled(const Tensor& x) { return x * 2 + 1; }

struct Stance {
  std::string before;
  explicit Stance(const std::string& name) : before(set_stance(name)) {}
  ~Stance() { set_stance(before); }
};

TEST(Parameters, WrongOnesNameTheNearest) {
  expect_error([] { compile(doubled, {.backend = "inducter"}); }, "did you mean 'inductor'?");
  expect_error([] { compile(doubled, {.backend = "tensorflow"}); }, "there are aot_eager, ");
  expect_error([] { compile(doubled, {.options = {{"number", "strict"}}}); }, "did you mean 'numbers'?");
  expect_error([] { compile(doubled, {.options = {{"numbers", "strictly"}}}); }, "strict | default | fast");
  expect_error([] { compile(doubled, {.backend = "eager", .options = {{"numbers", "strict"}}}); }, "has no option");
  expect_error([] { compile(doubled, {.mode = "fastest"}); }, "is not known");
  expect_error([] { set_stance("eager_on_recompil"); }, "did you mean 'eager_on_recompile'?");
}

TEST(Parameters, ABackendThatIsAFunction) {
  int graphs = 0;
  size_t backends = list_backends().size();
  auto backend = [&](const CapturedGraph& graph) {
    ++graphs;
    EXPECT_EQ(graph.operators().size(), 2u);
    return graph.compile("interpreter");
  };
  auto f = compile(doubled, {.backend = backend});
  for (int i = 0; i < 3; ++i) expect_close(f(numbers({3}) + i), doubled(numbers({3}) + i));
  EXPECT_EQ(graphs, 1);
  EXPECT_EQ(list_backends().size(), backends);
}

TEST(Parameters, WhatIsDisabledIsNotRecorded) {
  std::vector<bool> compiling;
  auto inner = compile([&](const Tensor& x) {
    compiling.push_back(is_compiling());
    return x.sin();
  });
  auto apart = disable([&](const Tensor& x) {
    compiling.push_back(is_compiling());
    static_cast<float*>(x.data_ptr())[0] += 1;
    return inner(x) * 2;
  });
  auto f = compile([&](const Tensor& x) {
    compiling.push_back(is_compiling());
    Tensor y = apart(x + 1);
    compiling.push_back(is_compiling());
    return y + x;
  });
  Tensor x = numbers({4}), first = x + 1;
  first[0] += 1;
  expect_close(f(x), first.sin() * 2 + x);
  EXPECT_EQ(compiling, (std::vector<bool>{true, false, false, true}));
  Explanation e = f.explain();
  ASSERT_EQ(e.breaks.size(), 1u) << e.str();
  EXPECT_EQ(e.breaks[0].reason, "a function that is not to be compiled");
  EXPECT_TRUE(inner.explain().graphs.empty());
  expect_close(inner(x), x.sin());
  EXPECT_EQ(inner.explain().graphs.size(), 1u);
  EXPECT_FALSE(is_compiling());
}

TEST(Parameters, Stances) {
  auto f = compile([](const Tensor& x, double k) { return (x * k).sin(); }, {.dynamic = false});
  auto check = [&](int64_t n, double k) { expect_close(f(numbers({n}), k), (numbers({n}) * k).sin()); };
  {
    Stance stance("force_eager");
    check(3, 2);
    EXPECT_TRUE(f.explain().graphs.empty());
  }
  check(3, 2);
  EXPECT_EQ(f.explain().graphs.size(), 1u);
  {
    Stance stance("eager_on_recompile");
    check(3, 2);
    check(4, 2);
    check(3, 5);
    EXPECT_EQ(f.explain().graphs.size(), 1u);
    EXPECT_TRUE(f.explain().recompiles.empty());
  }
  {
    Stance stance("fail_on_recompile");
    check(3, 2);
    expect_error([&] { f(numbers({4}), 2); }, "size 0 is 4");
    expect_error([&] { f(numbers({3}), 5); }, "'other' is 5");
    check(3, 2);
  }
  check(4, 2);
  EXPECT_EQ(f.explain().graphs.size(), 2u);
}

TEST(Parameters, ResetForgetsGraphs) {
  auto f = compile(doubled, {.dynamic = false});
  for (int64_t n : {2, 3, 4}) f(numbers({n}));
  EXPECT_EQ(f.explain().graphs.size(), 3u);
  reset();
  EXPECT_TRUE(f.explain().graphs.empty());
  EXPECT_TRUE(f.explain().recompiles.empty());
  expect_close(f(numbers({5})), doubled(numbers({5})));
  EXPECT_EQ(f.explain().graphs.size(), 1u);
  // Also from inside: the call goes on with what it began.
  auto g = compile([](const Tensor& x) {
    Tensor y = x + 1;
    reset();
    return y * 2;
  });
  for (int i = 0; i < 2; ++i) expect_close(g(numbers({3})), (numbers({3}) + 1) * 2);
}

TEST(Parameters, ACompiledModuleIsAModule) {
  nn::Sequential net(nn::Linear(4, 8), nn::Dropout(0.5), nn::Linear(8, 2));
  auto compiled = compile(net);
  EXPECT_EQ(compiled->parameters().size(), 4u);
  compiled->eval();
  EXPECT_FALSE(net->is_training());
  expect_close(compiled(numbers({3, 4})), net->forward(numbers({3, 4})));
  compiled->train();
  compiled(numbers({3, 4})).sum().backward();
  for (const Tensor& p : net->parameters()) EXPECT_TRUE(p.grad().defined());
  compiled->zero_grad();
  compiled->to(kFloat64);
  compiled->eval();
  EXPECT_EQ(compiled(numbers({3, 4}).to(kFloat64)).scalar_type(), kFloat64);
  EXPECT_EQ(compiled.ptr().get(), net.ptr().get());
  auto shared = compile(net.ptr());
  expect_close(shared(numbers({5, 4}).to(kFloat64)), compiled(numbers({5, 4}).to(kFloat64)));
}

// Sequence lengths in any order: one graph for the first length, one for all others; that of 1 may be its own.
TEST(Parameters, SequenceLengthsInRandomOrder) {
  Tensor table = numbers({50, 8}).clone(), w = numbers({8, 8}).clone();
  auto f = [&](const Tensor& tokens) {
    Tensor x = embedding(table, tokens), h = layer_norm(x, {8});
    Tensor scores = h.matmul(w).matmul(h.transpose(-1, -2)) / 8;
    Tensor mask = ones({tokens.size(0), tokens.size(0)}).tril() == 0;
    return (scores.masked_fill(mask, -1e9).softmax(-1).matmul(x) + x).mean(0);
  };
  auto g = compile(f);
  std::vector<int64_t> lengths(512);
  for (int64_t n = 1; n <= 512; ++n) lengths[n - 1] = n;
  std::shuffle(lengths.begin(), lengths.end(), std::mt19937(7));
  for (int64_t n : lengths) expect_close(g(arange(n, kInt64) * 7 % 50), f(arange(n, kInt64) * 7 % 50));
  EXPECT_LE(g.explain().graphs.size(), 2u) << g.explain().str();
}

}  // namespace
}  // namespace brasa
