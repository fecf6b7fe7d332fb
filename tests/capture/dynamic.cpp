// The second distinct value of a size or number makes it symbolic: one graph serves all that follow.
#include <thread>

#include <brasa/nn.h>
#include <brasa/optim.h>

#include "values.h"

namespace brasa {
namespace {

// No view of another tensor.
Tensor fresh(IntArrayRef sizes) { return numbers(sizes).clone(); }

constexpr int64_t kBatches[] = {8, 16, 24, 7, 1, 16, 8, 33};

class Dynamic : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const {
    CompileOptions o;
    o.backend = GetParam();
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, Dynamic, ::testing::Values("interpreter", "inductor", "eager", "aot_eager"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Dynamic, PointwiseAndReduction) {
  auto f = [](const Tensor& x, const Tensor& b) { return ((x + b).tanh() * x).sum({1}) / 3; };
  auto g = compile(f, options());
  for (int64_t n : kBatches) expect_close(g(fresh({n, 5}), fresh({5})), f(fresh({n, 5}), fresh({5})));
  Explanation e = g.explain();
  EXPECT_EQ(e.graphs.size(), 2u) << e.str();
  EXPECT_EQ(e.recompiles.size(), 1u) << e.str();
}

// Sizes that the function computes with are numbers of C++ for it.
TEST_P(Dynamic, SizesInArithmetic) {
  auto f = [](const Tensor& x) {
    int64_t n = x.size(0), half = n / 2;
    Tensor a = x.view({n * 2, 3}).sum({1}), b = x.narrow(0, half, n - half).mean();
    Tensor c = x.reshape({1, n, 6}).expand({2, n, 6}).transpose(0, 1).reshape({n, -1});
    return a.view({n, 2}) + b + c.slice(1, 0, 2) + zeros({n, 1}) + arange(n, kFloat32).unsqueeze(1);
  };
  auto g = compile(f, options());
  for (int64_t n : {8, 16, 24, 6, 34, 8}) expect_close(g(fresh({n, 6})), f(fresh({n, 6})));
  Explanation e = g.explain();
  EXPECT_EQ(e.graphs.size(), 2u) << e.str();
}

// A view that comes from outside is read through the tensor that it looks at.
TEST_P(Dynamic, ViewsFromOutside) {
  auto f = [](const Tensor& x) { return (x * x).sum({0}); };
  auto g = compile(f, options());
  for (int64_t n : {4, 7, 9, 5}) {
    expect_close(g(numbers({n, 3})), f(numbers({n, 3})));
    expect_close(g(fresh({3, n}).t()), f(fresh({3, n}).t()));
  }
  EXPECT_EQ(g.explain().graphs.size(), 4u) << g.explain().str();
}

TEST_P(Dynamic, TwoSizes) {
  auto f = [](const Tensor& x, const Tensor& w) {
    int64_t b = x.size(0), t = x.size(1);
    return x.reshape({b * t, -1}).matmul(w).view({b, t, -1}).softmax(1);
  };
  auto g = compile(f, options());
  Tensor w = fresh({4, 5});
  for (auto [b, t] : {std::pair<int64_t, int64_t>{2, 3}, {4, 7}, {5, 6}, {3, 11}, {2, 3}})
    expect_close(g(fresh({b, t, 4}), w), f(fresh({b, t, 4}), w));
  EXPECT_EQ(g.explain().graphs.size(), 2u) << g.explain().str();
}

TEST_P(Dynamic, APartOfABigTensor) {
  auto f = [](const Tensor& all, int64_t i) { return all.narrow(0, i * 4, 4).sum({0}) * 2; };
  auto g = compile(f, options());
  Tensor all = fresh({40, 3});
  for (int64_t i : {0, 1, 2, 7, 9, 3}) expect_close(g(all, i), f(all, i));
  EXPECT_LE(g.explain().graphs.size(), 2u) << g.explain().str();
}

TEST_P(Dynamic, Numbers) {
  auto f = [](const Tensor& x, double a, int64_t n) { return (x.sub(x.sin(), a) + n).clamp_min(a - 1); };
  auto g = compile(f, options());
  Tensor x = fresh({7});
  int i = 0;
  for (double a : {0.1, 0.2, 0.7, 0.1, 3.0}) {
    expect_close(g(x, a, i), f(x, a, i));
    ++i;
  }
  EXPECT_LE(g.explain().graphs.size(), 2u) << g.explain().str();
}

TEST_P(Dynamic, BehindABreak) {
  auto f = [](const Tensor& x) {
    Tensor s = (x * x).sum();
    return s.item<float>() > -1 ? x * s + x.size(0) : x;
  };
  auto g = compile(f, options());
  for (int64_t n : kBatches) expect_close(g(fresh({n})), f(fresh({n})));
  EXPECT_EQ(g.explain().graphs.size(), 4u) << g.explain().str();
}

TEST(DynamicOptions, NeverOrFromTheFirstCall) {
  auto f = [](const Tensor& x) { return (x * 2).view({x.size(0) * 3}).relu(); };
  auto fixed = compile(f, {.dynamic = false});
  auto open = compile(f, {.dynamic = true});
  for (int64_t n : {4, 5, 6, 7}) {
    expect_close(fixed(fresh({n, 3})), f(fresh({n, 3})));
    expect_close(open(fresh({n, 3})), f(fresh({n, 3})));
  }
  EXPECT_EQ(fixed.explain().graphs.size(), 4u);
  EXPECT_LE(open.explain().graphs.size(), 2u) << open.explain().str();
  EXPECT_TRUE(open.explain().graphs[0].symbolic);
}

TEST(DynamicOptions, MarkedSizesAreOpenInTheFirstGraph) {
  auto f = [](const Tensor& x, const Tensor& y) { return (x.softmax(1) * y).sum({0}) / 2; };
  auto g = compile(f);
  for (int64_t n : {6, 9, 2, 31, 9}) {
    Tensor x = fresh({n, 6}), y = fresh({n, 6}).requires_grad_();
    mark_dynamic(x, 0, 2, 31);
    mark_dynamic(y, std::vector<int64_t>{-2});
    Tensor eager_y = y.detach().clone().requires_grad_();
    Tensor out = g(x, y), expected = f(x, eager_y);
    expect_close(out, expected);
    out.sum().backward();
    expected.sum().backward();
    expect_close(y.grad(), eager_y.grad());
  }
  EXPECT_EQ(g.explain().graphs.size(), 1u) << g.explain().str();
  EXPECT_TRUE(g.explain().graphs[0].symbolic);
  // Size 1 has a graph of its own; a mark says nothing of the other dimensions, and a fixed number of another graph.
  expect_close(g(fresh({1, 6}), fresh({1, 6})), f(fresh({1, 6}), fresh({1, 6})));
  EXPECT_EQ(g.explain().graphs.size(), 2u);

  auto fixed = compile([](const Tensor& x) { return x * 2; }, {.dynamic = false});
  auto views = compile([](const Tensor& x) { return x.exp(); });
  for (int64_t n : {4, 5, 6}) {
    Tensor x = fresh({n, 3}), t = fresh({3, n}).t();
    mark_dynamic(x, 0);
    mark_dynamic(t, 0);
    expect_close(fixed(x), x * 2);
    expect_close(views(t), t.exp());
  }
  EXPECT_EQ(fixed.explain().graphs.size(), 3u);
  EXPECT_EQ(views.explain().graphs.size(), 1u) << views.explain().str();

  // Another tensor's size is not the marked one's where it equals it in the first call.
  auto sums = [](const Tensor& a, const Tensor& b) {
    Tensor first = a.sum();
    return first + b.sum();
  };
  auto apart = compile(sums, {.dynamic = true});
  for (int64_t n : {5, 7, 9}) {
    Tensor a = fresh({n}), b = fresh({5});
    mark_dynamic(a, 0);
    expect_close(apart(a, b), sums(a, b));
  }
  EXPECT_EQ(apart.explain().recompiles.size(), 0u) << apart.explain().str();

  Tensor x = fresh({4, 3});
  EXPECT_THROW(mark_dynamic(x, 2), Error);
  EXPECT_THROW(mark_dynamic(x, 0, 5), Error);
  EXPECT_THROW(mark_dynamic(x, 0, 1, 3), Error);
  EXPECT_THROW(mark_dynamic(Tensor(), 0), Error);
}

TEST(DynamicOptions, BeyondTheLimitCallsRunUncompiledAndKnownOnesDoNot) {
  auto f = [](const Tensor& x, int64_t d) { return x.sum({d}) * 2 + x.select(d, 0); };
  auto g = compile(f, {.recompile_limit = 2});
  Tensor x = fresh({2, 3, 4, 5});
  for (int round = 0; round < 2; ++round)
    for (int64_t d = 0; d < 4; ++d) expect_close(g(x, d), f(x, d));
  Explanation e = g.explain();
  EXPECT_EQ(e.graphs.size(), 2u) << e.str();
}

TEST(DynamicOptions, ThreadsCallAtOnceAndMayExplain) {
  auto f = [](const Tensor& x) { return (x * x).sum({0}) + 1; };
  auto g = compile(f);
  std::vector<std::thread> threads;
  for (int64_t k = 0; k < 4; ++k)
    threads.emplace_back([&, k] {
      for (int64_t n = 2; n < 12; ++n) {
        expect_close(g(fresh({n + k, 3})), f(fresh({n + k, 3})));
        EXPECT_GE(g.explain().graphs.size(), 1u);
      }
    });
  for (std::thread& t : threads) t.join();
  // Calls that begin before another one's graph is there make one of their own.
  EXPECT_LE(g.explain().graphs.size(), 8u);
}

TEST(DynamicOptions, BeyondTheLimitGradientsFlowToo) {
  auto f = [](const Tensor& x, int64_t d) { return (x.sum({d}) * x.select(d, 0)).exp(); };
  auto g = compile(f, {.recompile_limit = 1});
  for (int64_t d = 0; d < 3; ++d) {
    Tensor a = fresh({2, 3, 2}).requires_grad_(), b = a.detach().clone().requires_grad_();
    f(a, d).sum().backward();
    g(b, d).sum().backward();
    expect_close(b.grad(), a.grad());
  }
}

TEST(DynamicOptions, TheReasonNamesTheGuard) {
  auto g = compile([](const Tensor& x, int64_t d) { return x.sum({d}); });
  g(fresh({4, 3}), 0);
  g(fresh({5, 3}), 0);
  g(fresh({5, 3}), 1);
  Explanation e = g.explain();
  ASSERT_EQ(e.recompiles.size(), 2u) << e.str();
  EXPECT_NE(e.recompiles[0].find("size 0 is 5"), std::string::npos) << e.str();
  EXPECT_NE(e.recompiles[1].find("'dim'"), std::string::npos) << e.str();
  EXPECT_NE(e.str().find("f32[s0, 3]"), std::string::npos) << e.str();
}

// ---- Models.

struct BlockImpl : nn::Module {
  int64_t heads = 2, width = 8;
  nn::Linear qkv{nullptr}, out{nullptr}, up{nullptr}, down{nullptr};
  nn::LayerNorm a{nullptr}, b{nullptr};
  BlockImpl() {
    qkv = register_module("qkv", nn::Linear(width, 3 * width));
    out = register_module("out", nn::Linear(width, width));
    up = register_module("up", nn::Linear(width, 16));
    down = register_module("down", nn::Linear(16, width));
    a = register_module("a", nn::LayerNorm(nn::LayerNormOptions({width})));
    b = register_module("b", nn::LayerNorm(nn::LayerNormOptions({width})));
  }
  Tensor forward(const Tensor& x) {
    int64_t n = x.size(0), t = x.size(1);
    auto parts = qkv(a(x)).view({n, t, 3, heads, width / heads}).permute({2, 0, 3, 1, 4}).unbind(0);
    Tensor scores = parts[0].matmul(parts[1].transpose(-2, -1)) * 0.5;
    Tensor mask = ones({t, t}).tril();
    scores = scores + (mask - 1) * 1e9;
    Tensor y = scores.softmax(-1).matmul(parts[2]).transpose(1, 2).reshape({n, t, width});
    Tensor z = x + out(y);
    return z + down(gelu(up(b(z))));
  }
};
BRASA_MODULE(Block);

void same_parameters(nn::Module& to, const nn::Module& from) {
  NoGradGuard guard;
  auto a = to.parameters(), b = from.parameters();
  for (size_t i = 0; i < a.size(); ++i) a[i].copy_(b[i]);
}

TEST(DynamicModels, TransformerBlockForward) {
  Block block;
  NoGradGuard guard;
  auto f = [&](const Tensor& x) { return block->forward(x); };
  auto g = compile(f);
  auto shapes = {std::pair<int64_t, int64_t>{8, 5}, {16, 9}, {24, 12}, {7, 4}, {1, 6}, {3, 9}};
  for (auto [n, t] : shapes) expect_close(g(fresh({n, t, 8})), f(fresh({n, t, 8})));
  EXPECT_EQ(g.explain().graphs.size(), 2u) << g.explain().str();
}

template <class Model, class MakeOptimizer, class Data>
void train(Model eager, Model compiled, MakeOptimizer make, Data data, size_t graphs, bool schedule) {
  same_parameters(*compiled, *eager);
  auto run = [&](Model& model, auto& optimizer, bool compile_it) {
    auto step = [&](const Tensor& x, const Tensor& y) {
      optimizer.zero_grad();
      Tensor loss = mse_loss(model->forward(x), y);
      loss.backward();
      optimizer.step();
      return loss.detach();
    };
    auto fast = compile(step);
    std::vector<Tensor> losses;
    for (int i = 0; i < static_cast<int>(std::size(kBatches)); ++i) {
      if (schedule) static_cast<optim::AdamWOptions&>(optimizer.param_groups()[0].options()).lr(1e-3 / (1 + i));
      auto [x, y] = data(i);
      losses.push_back(compile_it ? fast(x, y) : step(x, y));
    }
    if (compile_it) {
      EXPECT_LE(fast.explain().graphs.size(), graphs) << fast.explain().str();
    }
    return losses;
  };
  auto a = make(eager->parameters()), b = make(compiled->parameters());
  auto want = run(eager, a, false), got = run(compiled, b, true);
  for (size_t i = 0; i < want.size(); ++i) EXPECT_TRUE(allclose(got[i], want[i], 1e-4, 1e-5)) << i << got[i] << want[i];
  for (size_t i = 0; i < eager->parameters().size(); ++i)
    EXPECT_TRUE(allclose(compiled->parameters()[i], eager->parameters()[i], 1e-3, 1e-4)) << i;
}

nn::Sequential mlp() { return nn::Sequential(nn::Linear(6, 16), nn::ReLU(), nn::Linear(16, 3)); }
auto adamw = [](std::vector<Tensor> p) { return optim::AdamW(p, optim::AdamWOptions(1e-3)); };
// Adam would make steps of the rounding errors that are the gradient of the keys' bias.
auto sgd = [](std::vector<Tensor> p) { return optim::SGD(p, optim::SGDOptions(1e-2).momentum(0.9)); };

TEST(DynamicModels, TrainingStepOfAnMlpAtManyBatchSizes) {
  train(
      mlp(), mlp(), adamw, [](int i) { return std::pair{fresh({kBatches[i], 6}), fresh({kBatches[i], 3})}; }, 3, false);
}

TEST(DynamicModels, TrainingStepOfATransformerBlock) {
  train(
      Block(), Block(), sgd,
      [](int i) {
        std::vector<int64_t> sizes = {kBatches[i], 4 + i, 8};
        return std::pair{fresh(sizes), fresh(sizes) + 1};
      },
      3, false);
}

// The forward pass alone is compiled; loss and backward are outside.
TEST(DynamicModels, BackwardOutside) {
  Block eager, compiled;
  same_parameters(*compiled, *eager);
  auto g = compile([&](const Tensor& x) { return compiled->forward(x); });
  int i = 0;
  for (int64_t n : kBatches) {
    Tensor a = fresh({n, 4 + i % 3, 8}).requires_grad_(), b = a.detach().clone().requires_grad_();
    ++i;
    eager->zero_grad();
    compiled->zero_grad();
    (eager->forward(a) * a).sum().backward();
    Tensor out = g(b);
    EXPECT_EQ(out.grad_fn()->next_edges().at(0).function->name(), "CompiledBackward") << n;
    (out * b).sum().backward();
    EXPECT_TRUE(allclose(b.grad(), a.grad(), 1e-4, 1e-5)) << n;
    auto p = eager->parameters(), q = compiled->parameters();
    for (size_t k = 0; k < p.size(); ++k) EXPECT_TRUE(allclose(q[k].grad(), p[k].grad(), 1e-3, 1e-4)) << n << " " << k;
  }
  EXPECT_LE(g.explain().graphs.size(), 3u) << g.explain().str();
}

// The pass that lowers the convolution learns that as many channels as groups are 16; other types have the symbol still.
TEST(DynamicModels, WhatAPassLearnsHoldsForOtherResults) {
  const std::vector<int64_t> one(2, 1), two(2, 2);
  auto f = [&](const std::vector<Tensor>& in) {
    Tensor y = conv2d(in[0], in[1], in[2], one, two, two, 16);
    return std::vector{batch_norm(y, {}, {}, in[3], in[4], false, 0.1, 1e-5, false).tanh(), y.mean(1)};
  };
  auto g = compile(f, {.dynamic = true});
  std::vector<Tensor> in = {numbers({2, 16, 4, 5}), numbers({16, 1, 1, 1}), numbers({16}), zeros({16}), ones({16})};
  in[0].requires_grad_();
  auto gradient = [&](const std::vector<Tensor>& out) {
    return autograd::grad({out[0].sum() + out[1].square().sum()}, {in[0]})[0];
  };
  expect_close(gradient(g(in)), gradient(f(in)));
}

// The size of a slice is halved by a strided convolution, or the whole's is quartered.
TEST(DynamicModels, StridedConvolutionOfEverySecondElement) {
  const std::vector<int64_t> one(2, 1), two(2, 2), three(2, 3);
  Tensor weight = numbers({8, 1, 3, 3}).set_requires_grad(true), scale = numbers({8});
  auto f = [&](const Tensor& x) {
    return batch_norm(conv2d(x, weight, {}, two, one, three, 2), scale, {}, zeros({8}), ones({8}), false, 0.1, 1e-5,
                      false);
  };
  auto g = compile(f, {.dynamic = true});
  for (int64_t width : {31, 16, 17}) {
    Tensor x = numbers({2, 2, 16, 2 * width}).slice(3, 0, 2 * width, 2).detach().set_requires_grad(true);
    auto gradients = [&](const Tensor& y) { return autograd::grad({y.square().sum()}, {x, weight}); };
    std::vector<Tensor> got = gradients(g(x)), expected = gradients(f(x));
    expect_close(got[0], expected[0]);
    EXPECT_TRUE(allclose(got[1], expected[1], 1e-4, 1e-4));
  }
}

// The planes of such a norm have as many places as the sum of two images' says.
TEST(DynamicModels, ANormOfImagesThatWereJoined) {
  CompileOptions options;
  options.dynamic = true;
  auto f = [](const Tensor& x, const Tensor& y) { return group_norm(cat({x, y}, 3).relu(), 2, {}, {}, 1e-5, true); };
  auto compiled = compile(f, options);
  for (int64_t size : {5, 8, 2, 11}) {
    Tensor x = randn({3, 4, size, 7}), y = randn({3, 4, size, size + 1});
    EXPECT_TRUE(allclose(compiled(x, y), f(x, y), 1e-4, 1e-5)) << size;
  }
}

TEST(DynamicModels, AScheduledLearningRate) {
  train(mlp(), mlp(), adamw, [](int) { return std::pair{fresh({8, 6}), fresh({8, 3})}; }, 3, true);
}

}  // namespace
}  // namespace brasa
