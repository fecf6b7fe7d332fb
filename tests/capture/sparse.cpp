#include <brasa/compile.h>
#include <brasa/optim.h>

#include "tensor/util.h"

namespace brasa {
namespace {

using namespace testing;

Tensor matrix(bool rows) {
  Tensor d = tensor({{0.0, 2.0, 0.0, 1.0}, {3.0, 0.0, 0.0, 0.0}, {0.0, 0.0, -1.0, 4.0}});
  return rows ? d.to_sparse_csr() : d.to_sparse();
}

TEST(SparseCompiled, ProductsAreOneGraph) {
  for (bool rows : {false, true}) {
    Tensor a = matrix(rows), b = randn({4, 5}), c = randn({3, 5});
    auto f = [&](const Tensor& x, const Tensor& y) { return (a.mm(x).relu() + y).sum(1); };
    auto g = compile(f, {.fullgraph = true});
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(allclose(g(b, c), f(b, c), 1e-5, 1e-5));
    EXPECT_EQ(g.explain().graphs.size(), 1u);
  }
}

TEST(SparseCompiled, GradientsOfLeavesAndDenseTensors) {
  for (bool rows : {false, true}) {
    Tensor a = matrix(rows).requires_grad_(), x = randn({4, 2}).requires_grad_();
    auto f = [&](const Tensor& t) { return (a.mm(t).tanh() * 2).sum(); };
    f(x).backward();
    Tensor ga = a.grad().to_dense(), gx = x.grad();
    auto g = compile(f);
    for (int i = 0; i < 2; ++i) {
      a.mutable_grad().reset();
      x.mutable_grad().reset();
      g(x).backward();
      ASSERT_EQ(a.grad().layout(), a.layout());
      EXPECT_TRUE(allclose(a.grad().to_dense(), ga, 1e-5, 1e-5));
      EXPECT_TRUE(allclose(x.grad(), gx, 1e-5, 1e-5));
    }
  }
}

TEST(SparseCompiled, MadeInside) {
  Tensor i = tensor({{0, 1, 1}, {2, 0, 2}});
  auto f = [&](const Tensor& v) {
    Tensor s = sparse_coo_tensor(i, v * 2, {2, 3});
    return (s + s).to_dense() + (s * tensor({1.0, 2.0, 3.0})).t().to_dense().sum();
  };
  auto g = compile(f, {.fullgraph = true});
  Tensor v = tensor({1.0, 2.0, 3.0});
  EXPECT_TRUE(allclose(g(v), f(v)));
  // What depends on values breaks the graph, and is right.
  auto h = [](const Tensor& d) { return (d * 2).to_sparse().sum(0).to_dense() + 1; };
  Tensor d = matrix(false).to_dense();
  EXPECT_TRUE(allclose(compile(h)(d), h(d)));
}

TEST(SparseCompiled, TrainingStepsWithLookups) {
  auto train = [](bool compiled) {
    Tensor w = arange(12).reshape({6, 2}).to(kFloat).div(10).requires_grad_();
    optim::SGD sgd(std::vector<Tensor>{w}, 0.1);
    auto step = [&](const Tensor& at) {
      sgd.zero_grad();
      Tensor loss = embedding(w, at, -1, false, true).square().sum();
      loss.backward();
      sgd.step();
      return loss.detach();
    };
    auto fast = compile(step, {.fullgraph = true});
    for (int k = 0; k < 4; ++k) {
      Tensor at = tensor({1, 4, k % 3});
      compiled ? fast(at) : step(at);
    }
    if (compiled) {
      EXPECT_LE(fast.explain().graphs.size(), 2u);
    }
    return w.detach();
  };
  EXPECT_TRUE(allclose(train(true), train(false)));
}

TEST(SparseCompiled, BackwardOutsideOfLookups) {
  Tensor w = randn({6, 2}).requires_grad_(), at = tensor({{1, 4}, {1, 0}});
  auto f = [&](const Tensor& i) { return embedding(w, i, -1, false, true).tanh().sum(); };
  f(at).backward();
  Tensor want = w.grad().to_dense();
  auto g = compile(f);
  for (int k = 0; k < 2; ++k) {
    w.mutable_grad().reset();
    g(at).backward();
    ASSERT_TRUE(w.grad().is_sparse());
    EXPECT_TRUE(allclose(w.grad().to_dense(), want));
  }
}

TEST(SparseCompiled, OptimizersThatCoalesce) {
  auto train = [](bool compiled, auto make) {
    Tensor w = arange(12).reshape({6, 2}).to(kFloat).div(10).requires_grad_();
    auto optimizer = make(w);
    auto step = [&](const Tensor& at) {
      optimizer.zero_grad();
      embedding(w, at, -1, false, true).square().sum().backward();
      optimizer.step();
      return w.sum();
    };
    auto fast = compile(step);
    for (int k = 0; k < 3; ++k) compiled ? fast(tensor({1, 4, 1})) : step(tensor({1, 4, 1}));
    return w.detach();
  };
  auto adagrad = [](const Tensor& w) { return optim::Adagrad(std::vector<Tensor>{w}, 0.1); };
  auto adam = [](const Tensor& w) { return optim::SparseAdam(std::vector<Tensor>{w}, 0.1); };
  EXPECT_TRUE(allclose(train(true, adagrad), train(false, adagrad)));
  EXPECT_TRUE(allclose(train(true, adam), train(false, adam)));
}

}  // namespace
}  // namespace brasa
