#include <cmath>
#include <functional>

#include <brasa/brasa.h>
#include <brasa/checkpoint.h>
#include <brasa/compile.h>
#include <brasa/func.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

Tensor cubes(const Tensor& x) { return x * x * x; }

void expect_close(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.sizes(), b.sizes());
  EXPECT_TRUE(allclose(a, b, 1e-5, 1e-6)) << a << "\n" << b;
}

TEST(Vmap, IsALoop) {
  Tensor xs = randn({5, 3}), w = randn({4, 3});
  auto f = [&](const Tensor& x) { return softmax(w.mv(x).sin(), 0) * x.norm(); };
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < 5; ++i) rows.push_back(f(xs[i]));
  expect_close(func::vmap(f)(xs), stack(rows));
}

TEST(Vmap, Dimensions) {
  Tensor a = randn({3, 5}), b = randn({5, 4}), c = randn({2});
  auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) { return outer(x, y) + z.sum(); };
  Tensor got = func::vmap(f, {1, 0, std::nullopt}, 2)(a, b, c);
  Tensor want = (a.t().unsqueeze(2) * b.unsqueeze(1) + c.sum()).permute({1, 2, 0});
  expect_close(got, want);
  EXPECT_THROW(func::vmap(f)(a, b, c), Error);
  EXPECT_THROW(func::vmap(f, {0})(a, b, c), Error);
  EXPECT_THROW(func::vmap([](const Tensor& x) { return x; })(tensor(1.0)), Error);
}

// The number of calls may be the size of a dimension that a call sees: operands are aligned by calls all the same.
TEST(Vmap, AsManyCallsAsElements) {
  using F = std::function<Tensor(const Tensor&)>;
  const std::pair<const char*, F> cases[] = {
      {"sub", [](const Tensor& y) { return y - y.mean(); }},
      {"add", [](const Tensor& y) { return y + y.sum(); }},
      {"radd", [](const Tensor& y) { return y.sum() + y; }},
      {"mul", [](const Tensor& y) { return y * y.amax(); }},
      {"maximum", [](const Tensor& y) { return maximum(y, y.mean()); }},
      {"addcmul", [](const Tensor& y) { return addcmul(y, y.sum(), y.mean(), 0.5); }},
      {"addcmul of all", [](const Tensor& y) { return addcmul(y.sum(), y, y.mean(), 0.5); }},
      {"compare", [](const Tensor& y) { return (y > y.mean()).to(kFloat); }},
      {"where", [](const Tensor& y) { return where(y > y.mean(), y.sum(), y); }},
      {"lerp", [](const Tensor& y) { return lerp(y, y.sum(), y.mean()); }},
      {"in place", [](const Tensor& y) { return y.clone().mul_(y.sum()); }},
      {"atan2", [](const Tensor& y) { return atan2(y, y.sum()); }},
      {"masked_fill", [](const Tensor& y) { return y.masked_fill(y > 0, y.sum()); }},
      {"pow", [](const Tensor& y) { return y.abs().pow(y.mean().abs()); }},
      {"outside", [w = randn({3})](const Tensor& y) { return y.sum() * w; }},
      {"outside scalar", [w = randn({})](const Tensor& y) { return y.sum() * w + y; }},
      {"outer", [](const Tensor& y) { return y.unsqueeze(0) * y.unsqueeze(1) - y; }},
      {"gradient",
       [](const Tensor& y) {
         return func::grad([](const Tensor& t) { return ((t - t.mean()) * t.sum()).square().sum(); })(y);
       }},
  };
  for (const auto& [name, f] : cases) {
    SCOPED_TRACE(name);
    for (int64_t calls : {3, 2, 1}) {
      Tensor xs = randn({calls, 3});
      std::vector<Tensor> rows;
      for (int64_t i = 0; i < calls; ++i) rows.push_back(f(xs[i]));
      expect_close(func::vmap(f)(xs), stack(rows));
      auto compiled = compile([&f = f](const Tensor& all) { return func::vmap(f)(all); });
      expect_close(compiled(xs), stack(rows));
    }
    Tensor xs = randn({3, 3}).requires_grad_(), again = xs.detach().clone().requires_grad_();
    Tensor loss = zeros({});
    for (int64_t i = 0; i < 3; ++i) loss = loss + f(again[i]).sum();
    if (!loss.requires_grad()) continue;
    func::vmap(f)(xs).sum().backward();
    loss.backward();
    expect_close(xs.grad(), again.grad());
  }
}

TEST(Vmap, ViewsAndWrites) {
  Tensor xs = randn({6, 4, 4});
  auto f = [](const Tensor& x) {
    Tensor y = x.clone();
    y.t()[1].mul_(2);
    y.diagonal().add_(y[0]);
    y.select(1, 3).copy_(x[2]);
    return y;
  };
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < 6; ++i) rows.push_back(f(xs[i]));
  expect_close(func::vmap(f)(xs), stack(rows));
}

TEST(Vmap, OfVmap) {
  Tensor a = randn({3, 4}), b = randn({5, 4});
  auto dot = [](const Tensor& x, const Tensor& y) { return (x * y).sum(); };
  auto against_all = [&](const Tensor& x) { return func::vmap(dot, {std::nullopt, 0})(x, b); };
  expect_close(func::vmap(against_all)(a), a.matmul(b.t()));
}

TEST(Vmap, HasDerivatives) {
  Tensor xs = randn({5, 3}).requires_grad_(), w = randn({3}).requires_grad_();
  func::vmap([&](const Tensor& x) { return (x * w).sin().sum(); })(xs).sum().backward();
  Tensor dx = xs.grad().clone(), dw = w.grad().clone();
  xs.mutable_grad() = Tensor();
  w.mutable_grad() = Tensor();
  (xs * w).sin().sum().backward();
  expect_close(dx, xs.grad());
  expect_close(dw, w.grad());
}

TEST(Vmap, ConstantsAndErrors) {
  Tensor xs = randn({3, 2}), out = zeros({2});
  expect_close(func::vmap([](const Tensor&) { return ones({2}); })(xs), ones({3, 2}));
  EXPECT_THROW(func::vmap([&](const Tensor& x) { return out.add_(x); })(xs), Error);
  EXPECT_THROW(func::vmap([&](const Tensor& x) { return x * x.sum().item<double>(); })(xs), Error);
  EXPECT_THROW(func::vmap([&](const Tensor& x) { return x + randn({2}); })(xs), Error);
  Tensor escaped;
  func::vmap([&](const Tensor& x) { return escaped = x + 1; })(xs);
  EXPECT_THROW(escaped.sum().item<double>(), Error);
}

TEST(Vmap, Randomness) {
  Tensor xs = ones({5, 40});
  auto noisy = [](const Tensor& x) { return x + randn({40}); };
  EXPECT_THROW(func::vmap(noisy)(xs), Error);
  EXPECT_THROW(func::vmap(noisy, {}, 0, "unlike")(xs), Error);
  Tensor same = func::vmap(noisy, {}, 0, "same")(xs), different = func::vmap(noisy, {}, 0, "different")(xs);
  for (int64_t i = 1; i < 5; ++i) {
    EXPECT_TRUE(same[i].equal(same[0]));
    EXPECT_FALSE(different[i].equal(different[0]));
  }
  EXPECT_FALSE(func::vmap(noisy, {}, 0, "same")(xs).equal(same));
  EXPECT_NEAR(func::vmap(noisy, {}, 0, "different")(ones({200, 40})).std().item<double>(), 1, 0.05);
  // Of an operator that draws and takes the mapped input; and inside a map inside a map.
  auto dropped = [](const Tensor& x) { return dropout(x, 0.5, true); };
  same = func::vmap(dropped, {}, 0, "same")(xs), different = func::vmap(dropped, {}, 0, "different")(xs);
  EXPECT_TRUE(same[1].equal(same[0]));
  EXPECT_FALSE(different[1].equal(different[0]));
  EXPECT_NEAR(different.ne(0).to(kFloat32).mean().item<double>(), 0.5, 0.15);
  auto rows = [&](const Tensor& x) { return func::vmap(dropped, {}, 0, "different")(x); };
  Tensor both = func::vmap(rows, {}, 0, "different")(ones({3, 3, 40})).view({9, 40});
  for (int64_t i = 0; i < 9; ++i)
    for (int64_t j = 0; j < i; ++j) EXPECT_FALSE(both[i].equal(both[j])) << i << " " << j;
}

TEST(Vmap, WhatDrawsNothingIsNotRandom) {
  Tensor xs = randn({2, 3, 2, 4});
  std::vector<Tensor> weights = {randn({6, 4}), randn({6, 2})};
  for (auto f : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return dropout(x, 0.5, false); },
           [&](const Tensor& x) {
             return std::get<0>(gru(x, zeros({1, 2, 2}), weights, false, 1, 0.0, true, false, false));
           },
           [](const Tensor& x) { return scaled_dot_product_attention(x, x, x); }}) {
    Tensor all = func::vmap(f)(xs);
    for (int64_t i = 0; i < 2; ++i) expect_close(all[i], f(xs[i]));
    expect_close(func::jacrev(f)(xs[0]), func::jacfwd(f)(xs[0]));
  }
}

TEST(Vmap, BackwardHasTheNumbersOfForward) {
  auto dropped = [](const Tensor& x) { return dropout(x, 0.5, true); };
  Tensor x = ones({40});
  // Drawn before the map.
  auto [y, pull] = func::vjp(dropped, x);
  auto back = [pull = pull](const Tensor& ct) { return pull({ct})[0]; };
  for (const char* randomness : {"error", "same", "different"}) {
    Tensor g = func::vmap(back, {}, 0, randomness)(ones({3, 40}));
    for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(g[i].equal(y[0])) << randomness;
  }
  manual_seed(5);
  Tensor rows = func::jacrev(dropped)(x);
  manual_seed(5);
  EXPECT_TRUE(rows.equal(dropped(x).diag()));
  // Drawn inside.
  auto both = [&](const Tensor& x) {
    auto [y, pull] = func::vjp(dropped, x);
    return std::vector<Tensor>{y[0], pull({ones({40})})[0]};
  };
  for (const char* randomness : {"same", "different"}) {
    std::vector<Tensor> all = func::vmap(both, {}, 0, randomness)(ones({3, 40}));
    EXPECT_TRUE(all[0].equal(all[1])) << randomness;
    EXPECT_EQ(all[0][0].equal(all[0][1]), randomness == std::string("same"));
  }
  EXPECT_THROW(func::vmap(both)(ones({3, 40})), Error);
}

TEST(Vmap, OfOperatorsThatCheckValues) {
  Tensor table = randn({5, 2});
  auto rows = [&](const Tensor& i) { return embedding(table, i); };
  Tensor i = tensor({4, 0, 3, 3}).view({2, 2});
  expect_close(func::vmap(rows)(i), embedding(table, i));
  EXPECT_THROW(func::vmap(rows)(i + 1).cpu(), Error);
}

TEST(Vmap, OfDistributions) {
  Tensor rate = arange(1, 31, kFloat64).view({3, 10});
  for (auto draw : {+[](const Tensor& x) { return poisson(x); }, +[](const Tensor& x) { return _standard_gamma(x); },
                    +[](const Tensor& x) { return binomial(x * 10, full({10}, 0.25, kFloat64)); }}) {
    manual_seed(8);
    Tensor same = func::vmap(draw, {}, 0, "same")(rate),
           different = func::vmap(draw, {}, 0, "different")(full_like(rate, 20));
    for (int64_t i = 0; i < 3; ++i) {
      manual_seed(8);
      EXPECT_TRUE(allclose(same[i], draw(arange(1 + 10 * i, 11 + 10 * i, kFloat64)), 1e-12)) << i;
      EXPECT_FALSE(different[i].equal(different[(i + 1) % 3]));
    }
  }
}

TEST(Jvp, OfRandomOperators) {
  Tensor x = randn({50}), v = randn({50});
  auto f = [](const Tensor& x) { return dropout(x, 0.5, true) * 3; };
  manual_seed(5);
  Tensor want = f(ones({50}));
  manual_seed(5);
  auto [values, tangents] = func::jvp(f, x, v);
  expect_close(values[0], want * x);
  expect_close(tangents[0], want * v);
  manual_seed(5);
  auto [results, back] = func::vjp(f, x);
  expect_close(results[0], want * x);
  expect_close(back({v})[0], want * v);
}

TEST(Jvp, IsTheDirectionalDerivative) {
  Tensor x = randn({4}, kDouble), v = randn({4}, kDouble);
  auto f = [](const Tensor& x) { return x.sin() * x[0] + cubes(x).cumsum(0); };
  auto [y, dy] = func::jvp(f, x, v);
  double h = 1e-6;
  expect_close(y[0], f(x));
  EXPECT_TRUE(allclose(dy[0], (f(x + h * v) - f(x - h * v)) / (2 * h), 1e-6, 1e-7));
  auto [one, none] = func::jvp([](const Tensor& x) { return ones_like(x); }, x, v);
  expect_close(none[0], zeros_like(x));
  EXPECT_THROW(func::jvp(f, x, randn({3}, kDouble)), Error);
}

TEST(Jvp, ThroughWrites) {
  Tensor x = randn({4}), v = randn({4});
  auto f = [](const Tensor& x) {
    Tensor y = x * 2;
    y[1].mul_(y[0]);
    return y;
  };
  auto dy = func::jvp(f, x, v).second[0];
  Tensor want = 2 * v;
  want[1] = 4 * (x[0] * v[1] + x[1] * v[0]);
  expect_close(dy, want);
}

TEST(Vjp, PullsBack) {
  Tensor x = randn({3}), y = randn({3}), ct = randn({3});
  auto [values, back] = func::vjp([](const Tensor& a, const Tensor& b) { return a * b.exp(); }, x, y);
  expect_close(values[0], x * y.exp());
  EXPECT_FALSE(values[0].requires_grad());
  auto g = back({ct});
  expect_close(g[0], ct * y.exp());
  expect_close(g[1], ct * x * y.exp());
}

TEST(Grad, OfGrad) {
  auto f = [](const Tensor& x) { return x.sin(); };
  Tensor x = tensor(0.7);
  expect_close(func::grad(f)(x), x.cos());
  expect_close(func::grad(func::grad(f))(x), -x.sin());
  expect_close(func::grad(func::grad(func::grad(f)))(x), -x.cos());
  EXPECT_THROW(func::grad(f)(randn({2})), Error);
}

TEST(Grad, ForEveryExample) {
  Tensor xs = randn({6, 3}), w = randn({3});
  auto loss = [](const Tensor& w, const Tensor& x) { return (w * x).sum().tanh(); };
  Tensor each = func::vmap(func::grad(loss), {std::nullopt, 0})(w, xs);
  Tensor t = xs.mv(w).tanh();
  expect_close(each, (1 - t * t).unsqueeze(1) * xs);
}

TEST(Jacobian, BothWays) {
  Tensor x = randn({2, 3}), w = randn({4, 2});
  auto f = [&](const Tensor& x) { return w.matmul(x.sin()); };
  Tensor reverse = func::jacrev(f)(x), forward = func::jacfwd(f)(x);
  ASSERT_EQ(reverse.sizes(), IntArrayRef({4, 3, 2, 3}));
  expect_close(forward, reverse);
  Tensor want = zeros({4, 3, 2, 3});
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < 3; ++j)
      for (int64_t k = 0; k < 2; ++k) want.index_put_({i, j, k, j}, w[i][k] * x[k][j].cos());
  expect_close(reverse, want);
}

TEST(Jacobian, Hessian) {
  Tensor x = randn({3}), a = randn({3, 3});
  Tensor h = func::hessian([&](const Tensor& x) { return x.dot(a.mv(x)) + cubes(x).sum(); })(x);
  expect_close(h, a + a.t() + (6 * x).diag());
}

TEST(Func, Compiled) {
  Tensor xs = randn({5, 3}), w = randn({3});
  auto loss = [](const Tensor& w, const Tensor& x) { return (w * x).sum().tanh(); };
  auto each = func::vmap(func::grad(loss), {std::nullopt, 0});
  auto compiled = compile([&](const Tensor& w, const Tensor& x) { return each(w, x); }, {.fullgraph = true});
  for (int i = 0; i < 3; ++i) expect_close(compiled(w, xs), each(w, xs));
}

// As lengths of packed sequences do.
// Saves a value in a node of its own.
struct Square : autograd::Function<Square> {
  static Tensor forward(autograd::AutogradContext* c, const Tensor& x) {
    c->save_for_backward({x});
    return x * x;
  }
  static autograd::variable_list backward(autograd::AutogradContext* c, autograd::variable_list g) {
    return {g[0] * c->get_saved_variables()[0] * 2};
  }
};

TEST(Func, InAndAroundCheckpoints) {
  Tensor w = tensor({0.3, -0.2, 0.5}, kFloat64).requires_grad_();
  auto f = [&](const Tensor& x) { return Square::apply((x * w).sin()) * x; };
  using OfOne = std::function<Tensor(const Tensor&)>;
  std::vector<std::pair<const char*, std::function<OfOne(const OfOne&)>>> transformations = {
      {"vmap", [](const OfOne& g) { return OfOne(func::vmap(g)); }},
      {"jvp", [](const OfOne& g) { return OfOne([g](const Tensor& x) { return func::jvp(g, x, x).second[0]; }); }},
      {"grad", [](const OfOne& g) { return OfOne(func::grad([g](const Tensor& x) { return g(x).sum(); })); }},
      {"jacrev", [](const OfOne& g) { return OfOne(func::jacrev(g)); }},
  };
  auto checkpointed = [](const OfOne& g) { return OfOne([g](const Tensor& x) { return checkpoint(g, x); }); };
  auto gradients = [&](const OfOne& g) {
    Tensor x = tensor({{0.1, 0.7, -0.4}, {1.1, 0.2, 0.9}}, kFloat64).requires_grad_();
    return autograd::grad({g(x).exp().sum()}, {x, w});
  };
  for (auto& [name, transformed] : transformations) {
    std::vector<Tensor> want = gradients(transformed(f));
    for (const OfOne& g : {checkpointed(transformed(f)), transformed(checkpointed(f))}) {
      std::vector<Tensor> got = gradients(g);
      for (size_t i = 0; i < want.size(); ++i)
        EXPECT_TRUE(allclose(got[i], want[i], 1e-12, 1e-12)) << name << "\n" << got[i] << "\n" << want[i];
    }
  }
}

TEST(Constants, HaveValuesInsideOfTransformedFunctions) {
  auto f = [](const Tensor& x) {
    Tensor lengths = brasa::tensor({1, 3});
    return x.narrow(0, 0, lengths.max().item<int64_t>()).square().sum();
  };
  Tensor x = brasa::arange(4, kFloat), expected = brasa::tensor({0.f, 2.f, 4.f, 0.f});
  EXPECT_TRUE(func::grad(f)(x).equal(expected));
  EXPECT_TRUE(func::vmap(func::grad(f))(brasa::stack({x, x}))[1].equal(expected));
  EXPECT_THROW(func::vmap([](const Tensor& y) { return y * y.sum().item<float>(); })(brasa::ones({2, 3})), Error);
}

// Where the formula divides 0 by 0, the forward derivative is what the backward one is.
TEST(Jvp, OfNormsAndDeviationsAtZero) {
  Tensor zero = brasa::zeros({3}, kDouble), one = brasa::ones({3}, kDouble);
  auto along = [&](auto f) { return func::jvp(f, zero, one).second[0].template item<double>(); };
  for (double p : {0.5, 1.0, 2.0, 3.0}) EXPECT_EQ(along([&](const Tensor& x) { return x.norm(p); }), 0) << p;
  EXPECT_EQ(along([](const Tensor& x) { return x.std(); }), 0);
  EXPECT_EQ(along([](const Tensor& x) { return x.dist(x * 2); }), 0);
  Tensor x = brasa::tensor({3.0, 4.0}, kDouble), v = brasa::tensor({1.0, 0.5}, kDouble);
  EXPECT_DOUBLE_EQ(func::jvp([](const Tensor& t) { return t.norm(); }, x, v).second[0].item<double>(), 1.0);
  EXPECT_NEAR(func::jvp([](const Tensor& t) { return t.std(); }, x, v).second[0].item<double>(), -0.5 / std::sqrt(2.0),
              1e-12);
}

}  // namespace
}  // namespace brasa
