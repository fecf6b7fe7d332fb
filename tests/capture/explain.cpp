// What explain() tells of graph breaks, and options that are refused.
#include <map>
#include <set>
#include <sstream>

#include <brasa/nn.h>
#include <brasa/optim.h>

#include "values.h"

namespace brasa {
namespace {

TEST(Explain, BreaksHaveReasonOperatorCountAndLine) {
  int line = 0;
  auto f = compile([&](const Tensor& x) {
    Tensor y = x.sin();
    line = __LINE__ + 1;
    if (y.sum().item<float>() > 100) return y;
    std::ostringstream out;
    out << (y * 2);
    return y.exp();
  });
  for (int i = 0; i < 3; ++i) f(numbers({3}));
  Explanation e = f.explain();
  ASSERT_EQ(e.breaks.size(), 2u) << e.str();
  EXPECT_EQ(e.breaks[0].reason, "item()");
  EXPECT_EQ(e.breaks[0].after, "aten::sum");
  EXPECT_EQ(e.breaks[0].count, 3);
  EXPECT_EQ(e.breaks[1].reason, "printing");
  EXPECT_EQ(e.breaks[1].after, "aten::mul.Scalar");
  EXPECT_NE(e.str().find("graph break: item() needs a value, after aten::sum"), std::string::npos) << e.str();
  EXPECT_NE(e.str().find("3 times"), std::string::npos) << e.str();
  EXPECT_EQ(e.str().find("loops ["), std::string::npos) << e.str();
  // With debug information the line, else the function, as far as the linker keeps its name.
  if (const std::string& where = e.breaks[0].where; where.find(".cpp:") != std::string::npos) {
    EXPECT_NE(where.find("explain.cpp:" + std::to_string(line)), std::string::npos) << where;
  }
}

TEST(Explain, TheNormOfGradientsIsReadWhereSomebodyLooks) {
  for (bool looks : {false, true}) {
    nn::Linear net(3, 2);
    optim::SGD sgd(net->parameters(), 0.1);
    double norm = -1;
    auto f = compile([&](const Tensor& x) {
      sgd.zero_grad();
      Tensor loss = net->forward(x).square().sum();
      loss.backward();
      auto total = nn::utils::clip_grad_norm_(net->parameters(), 0.01);
      sgd.step();
      if (looks) norm = total;
      return loss;
    });
    for (int i = 0; i < 3; ++i) f(numbers({4, 3}));
    EXPECT_EQ(f.explain().breaks.size(), looks ? 1u : 0u) << f.explain().str();
    EXPECT_EQ(norm > 0.01, looks);
    std::vector<Tensor> grads;
    for (const Tensor& p : net->parameters()) grads.push_back(p.grad().flatten());
    EXPECT_NEAR(cat(grads).norm().item<double>(), 0.01, 1e-5);
  }
}

TEST(Explain, BranchesOnConditionsAreTold) {
  auto f = compile([](const Tensor& x) { return (x.sum() > 1).item<bool>() ? x.exp() : x.sin(); });
  f(numbers({3}));
  Explanation e = f.explain();
  ASSERT_EQ(e.breaks.size(), 1u) << e.str();
  EXPECT_NE(e.str().find("1 time; where(condition, a, b) chooses in the graph"), std::string::npos) << e.str();
}

TEST(Explain, RecompileLimitsBelowOneAreRefused) {
  for (int limit : {0, -1, -100}) {
    try {
      compile([](const Tensor& x) { return x; }, {.recompile_limit = limit});
      ADD_FAILURE() << limit;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find("recompile_limit"), std::string::npos) << e.what();
    }
  }
}

TEST(Explain, ALoopOfManyBreaksHasFewGraphs) {
  auto f = compile([](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 1000; ++i) {
      y = y + 1;
      if (y.item<float>() < 0) return y;
    }
    return y;
  });
  for (int i = 0; i < 2; ++i) EXPECT_EQ(f(zeros({})).item<float>(), 1000);
  EXPECT_LE(f.explain().graphs.size(), 80u);
}

TEST(Explain, ValuesThatAreInMemoryTogetherDoNotOverlap) {
  Tensor w = numbers({40, 40});
  auto f = compile([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = y.matmul(w).softmax(1);
    return y;
  });
  f(numbers({30, 40}));
  const Explanation e = f.explain();
  ASSERT_EQ(e.graphs.size(), 1u);
  const Explanation::Graph& g = e.graphs[0];
  if (g.kernels_after == 0) GTEST_SKIP() << "a backend without kernels";
  ASSERT_GT(g.memory.size(), 3u) << e.str(true);
  int64_t separate = 0;
  for (const auto& a : g.memory) {
    EXPECT_LE(a.offset + a.bytes, a.prepared ? g.prepared_bytes : g.arena_bytes) << e.str(true);
    EXPECT_LE(a.first, a.last);
    EXPECT_LT(a.last, static_cast<size_t>(g.kernels_after));
    separate += a.bytes;
    for (const auto& b : g.memory) {
      if (&a == &b || a.prepared != b.prepared || a.last < b.first || b.last < a.first) continue;
      bool apart = a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset;
      EXPECT_TRUE(apart || a.last == b.first || b.last == a.first) << e.str(true);  // else a kernel works in place
    }
  }
  EXPECT_LT(g.arena_bytes, separate) << e.str(true);
  EXPECT_NE(e.str(true).find("memory, kernels counted from 0: an arena of "), std::string::npos) << e.str(true);
}

// The backward pass needs an activation's derivative alone, which its own kernel computes beside its value.
TEST(Explain, AnActivationKeepsItsDerivative) {
  Tensor x = numbers({64, 40}), a = numbers({96, 40}).requires_grad_(), b = numbers({40, 96}).requires_grad_();
  auto step = [&](auto activation) {
    return [&, activation] {
      Tensor y = linear(activation(linear(x, a)), b);
      return autograd::grad({y.sin().sum()}, {a, b});
    };
  };
  auto check = [&](auto activation) {
    auto f = compile(step(activation));
    std::vector<Tensor> got = f(), expected = step(activation)();
    for (size_t i = 0; i < got.size(); ++i) expect_close(got[i], expected[i]);
    const Explanation e = f.explain();
    ASSERT_EQ(e.graphs.size(), 1u);
    if (e.graphs[0].kernels_after == 0) GTEST_SKIP() << "a backend without kernels";
    std::map<size_t, int> kept;  // by the kernel that writes them: values of hidden units that later kernels read
    for (const auto& v : e.graphs[0].memory)
      if (v.bytes >= 64 * 96 * 4 && v.last > v.first + 1) ++kept[v.first];
    ASSERT_FALSE(kept.empty()) << e.str(true);
    EXPECT_LE(kept.begin()->second, 2) << e.str(true);
  };
  check([](const Tensor& t) { return gelu(t); });
  check([](const Tensor& t) { return gelu(t, "tanh"); });
  check([](const Tensor& t) { return silu(t); });
  check([](const Tensor& t) { return mish(t); });
}

// Of a cross-entropy over many classes the scores are in memory, and then, in their place, their gradient: no log-probabilities.
TEST(Explain, ScoresGiveTheirPlaceToTheirGradient) {
  constexpr int64_t kRows = 64, kClasses = 2048;
  Tensor w = numbers({16, kClasses}), classes = arange(kRows, kInt64);
  auto f = compile([&](const Tensor& x) {
    Tensor loss = nn::functional::cross_entropy(x.mm(w), classes);
    return std::tuple(loss.detach(), autograd::grad({loss}, {x})[0]);
  });
  Tensor x = numbers({kRows, 16}).requires_grad_();
  Tensor gradient = std::get<1>(f(x));
  EXPECT_TRUE(
      allclose(gradient, autograd::grad({nn::functional::cross_entropy(x.mm(w), classes)}, {x})[0], 1e-4, 1e-6));
  const Explanation e = f.explain();
  ASSERT_EQ(e.graphs.size(), 1u);
  if (e.graphs[0].kernels_after == 0) GTEST_SKIP() << "a backend without kernels";
  std::set<int64_t> places;
  for (const auto& m : e.graphs[0].memory)
    if (m.bytes >= kRows * kClasses * 4) places.insert(m.offset);
  EXPECT_EQ(places.size(), 1u) << e.str(true);
}

// Weights are put in panels for the backward pass when that comes.
TEST(Explain, PanelsForTheBackwardPassWait) {
  constexpr int kLayers = 32;
  Tensor x = numbers({64, 96});
  std::vector<Tensor> weights;
  for (int i = 0; i < kLayers; ++i) weights.push_back((numbers({96, 96}) * 0.01).detach().requires_grad_());
  auto f = compile([&] {
    Tensor y = x;
    for (const Tensor& w : weights) y = linear(y, w).relu();
    return autograd::grad({y.sum()}, weights);
  });
  f();
  const Explanation e = f.explain();
  ASSERT_EQ(e.graphs.size(), 1u);
  if (e.graphs[0].kernels_after == 0) GTEST_SKIP() << "a backend without kernels";
  int64_t activations = int64_t{kLayers} * 64 * 96 * 4, weight = 96 * 96 * 4;
  EXPECT_LT(e.graphs[0].arena_bytes, activations + kLayers / 2 * weight) << e.str(true);
}

// The gradient of means of overlapping windows has no copy of itself for each element of a window.
TEST(Explain, GradientsOfMeansTakeLittleMemory) {
  auto f = compile(
      [](const Tensor& x, const Tensor& g) { return autograd::grad({avg_pool2d(x, {5}, {1}, {2})}, {x}, {g})[0]; });
  Tensor x = numbers({2, 3, 40, 40}).set_requires_grad(true);
  f(x, numbers({2, 3, 40, 40}));
  EXPECT_LE(f.explain().graphs.at(0).arena_bytes, 3 * x.numel() * 4) << f.explain().str(true);
}

}  // namespace
}  // namespace brasa
