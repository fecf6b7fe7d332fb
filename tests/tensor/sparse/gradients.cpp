#include "tensor/util.h"

namespace brasa {
namespace {

using namespace testing;

Tensor indices() { return tensor({{0, 1, 1}, {2, 0, 2}}); }
Tensor numbers() { return tensor({3.0, 4.0, 5.0}); }
Tensor leaf() { return sparse_coo_tensor(indices(), numbers(), {2, 3}, TensorOptions().requires_grad(true), true); }
Tensor weights() { return arange(6).reshape({2, 3}).to(kFloat); }

TEST(SparseGradients, ReachTheValues) {
  Tensor v = numbers().requires_grad_(), d = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}).requires_grad_();
  Tensor w = tensor({{1.0, -1.0}, {2.0, 0.5}});
  Tensor s = sparse_coo_tensor(indices(), v, {2, 3});
  EXPECT_TRUE(s.requires_grad());
  EXPECT_FALSE(s.is_leaf());
  (_sparse_mm(s, d) * w).sum().backward();
  expect_values(v.grad(), {-1, 3, 13});
  expect_values(d.grad(), {8, 2, 0, 0, 13, -0.5});
  auto of_values = [&](auto f) {
    v.mutable_grad().reset();
    f(sparse_coo_tensor(indices(), v, {2, 3})).backward();
    return v.grad();
  };
  expect_values(of_values([](const Tensor& t) { return (t.to_dense() * weights()).sum(); }), {2, 3, 5});
  expect_values(of_values([](const Tensor& t) { return _sparse_sum(t * 2); }), {2, 2, 2});
  expect_values(of_values([](const Tensor& t) { return (_sparse_softmax(t, 1).to_dense() * weights()).sum(); }),
                {0, -0.393224, 0.393224}, 1e-5);
  expect_values(of_values([](const Tensor& t) { return t.square().sum(); }), {6, 8, 10});
  expect_values(of_values([](const Tensor& t) { return t.to_sparse_csr().mv(tensor({1.0, 2.0, 3.0})).sum(); }),
                {3, 1, 3});
}

TEST(SparseGradients, ReachTheDenseTensor) {
  Tensor x = tensor({{0.0, 2.0, 0.0}, {3.0, 0.0, 4.0}}).requires_grad_();
  (x.to_sparse().values() * tensor({1.0, 2.0, 3.0})).sum().backward();
  expect_values(x.grad(), {0, 1, 0, 2, 0, 3});
  x.mutable_grad().reset();
  (x.sparse_mask(leaf().detach()).to_dense() * weights()).sum().backward();
  expect_values(x.grad(), {0, 0, 2, 3, 0, 5});
}

TEST(SparseGradients, OfALeafHaveItsPattern) {
  Tensor l = leaf(), d = tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}});
  EXPECT_TRUE(l.is_leaf());
  (_sparse_mm(l, d) * tensor({{1.0, -1.0}, {2.0, 0.5}})).sum().backward();
  ASSERT_TRUE(l.grad().is_sparse());
  EXPECT_EQ(l.grad().sizes(), l.sizes());
  expect_values(l.grad()._indices(), values(indices()));
  expect_values(l.grad()._values(), {-1, 3, 13});
  // A second pass adds.
  _sparse_sum(l).backward();
  expect_values(l.grad()._values(), {0, 4, 14});
  l.mutable_grad().reset();
  EXPECT_FALSE(l.grad().defined());
  (l * weights()).to_dense().sum().backward();
  expect_values(l.grad()._values(), {2, 3, 5});
  l.mutable_grad().reset();
  l.values().square().sum().backward();
  expect_values(l.grad()._values(), {6, 8, 10});
  l.mutable_grad().reset();
  Tensor dense = ones({2, 3}).requires_grad_();
  (dense + l).square().sum().backward();
  expect_values(l.grad().to_dense(), {0, 0, 8, 10, 0, 12});
  expect_values(dense.grad(), {2, 2, 8, 10, 2, 12});
  l.mutable_grad().reset();
  (l.t().to_dense() * arange(6).reshape({3, 2})).sum().backward();
  expect_values(l.grad()._values(), {4, 1, 5});
}

TEST(SparseGradients, OfProductsOfSparseMatrices) {
  Tensor a = leaf();
  Tensor b = sparse_coo_tensor(tensor({{0, 2, 2}, {1, 0, 1}}), tensor({1.0, 2.0, 3.0}), {3, 2},
                               TensorOptions().requires_grad(true), true);
  Tensor r = _sparse_mm(a, b);
  expect_values(r.values(), {6, 9, 10, 19});
  _sparse_sum(r).backward();
  expect_values(a.grad()._values(), {5, 1, 5});
  expect_values(b.grad()._values(), {4, 8, 8});
  Tensor c = leaf().detach().to_sparse_csr().requires_grad_();
  (c.mm(tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}})) * tensor({{1.0, -1.0}, {2.0, 0.5}})).sum().backward();
  ASSERT_TRUE(c.grad().is_sparse_csr());
  expect_values(c.grad().values(), {-1, 3, 13});
}

TEST(SparseGradients, ThroughSparseRoots) {
  Tensor l = leaf();
  (l * 2).backward(sparse_coo_tensor(indices(), tensor({1.0, 2.0, 3.0}), {2, 3}));
  expect_values(l.grad()._values(), {2, 4, 6});
  Tensor m = l * 3;
  Tensor y = (m * m).sum();
  std::vector<Tensor> g = autograd::grad({y}, {m, l}, {}, true);
  ASSERT_TRUE(g[0].is_sparse() && g[1].is_sparse());
  expect_values(g[0]._values(), {18, 24, 30});
  expect_values(g[1]._values(), {54, 72, 90});
}

TEST(SparseGradients, OfSecondOrder) {
  Tensor v = numbers().requires_grad_(), d = tensor({{1.0}, {3.0}, {5.0}}).requires_grad_();
  Tensor y = _sparse_mm(sparse_coo_tensor(indices(), v, {2, 3}), d).square().sum();
  std::vector<Tensor> g = autograd::grad({y}, {v, d}, {}, true, true);
  (g[0].sum() + (g[1] * tensor({{1.0}, {2.0}, {3.0}})).sum()).backward();
  Tensor v2 = numbers().requires_grad_(), d2 = tensor({{1.0}, {3.0}, {5.0}}).requires_grad_();
  Tensor y2 = zeros({6}).index_add(0, tensor({2, 3, 5}), v2).reshape({2, 3}).mm(d2).square().sum();
  std::vector<Tensor> g2 = autograd::grad({y2}, {v2, d2}, {}, true, true);
  (g2[0].sum() + (g2[1] * tensor({{1.0}, {2.0}, {3.0}})).sum()).backward();
  EXPECT_TRUE(allclose(v.grad(), v2.grad()));
  EXPECT_TRUE(allclose(d.grad(), d2.grad()));
}

TEST(SparseGradients, WritesIntoLeavesAreRejected) {
  Tensor l = leaf();
  EXPECT_TRUE(contains(error_of([&] { l.mul_(2); }), "in-place operation"));
  NoGradGuard guard;
  l.mul_(2);
  expect_values(l.values(), {6, 8, 10});
}

}  // namespace
}  // namespace brasa
