#include <gtest/gtest.h>

#include <functional>

#include <brasa/brasa.h>
#include <brasa/compile.h>

// Compiled functions whose results need gradients: one forward and one backward graph, cut by what is cheapest to keep.
namespace brasa {
namespace {

struct Net {
  Tensor w1, b1, w2;
  Net() {
    manual_seed(3);
    w1 = randn({8, 5}).set_requires_grad(true);
    b1 = randn({8}).set_requires_grad(true);
    w2 = randn({3, 8}).set_requires_grad(true);
  }
  Tensor operator()(const Tensor& x) const { return linear(gelu(linear(x, w1, b1)).tanh(), w2, {}).softmax(-1); }
  std::vector<Tensor> parameters() const { return {w1, b1, w2}; }
};

void expect_close(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double tolerance = 1e-5) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (a[i].defined()) {
      EXPECT_TRUE(allclose(a[i], b[i], tolerance, tolerance)) << i << "\n" << a[i] << "\n" << b[i];
    }
  }
}

class Joint : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const {
    CompileOptions o;
    o.backend = GetParam();
    return o;
  }
};

TEST_P(Joint, BackwardOutsideOfTheFunction) {
  Net net;
  auto f = compile([&](const Tensor& x) { return net(x); }, options());
  for (int call = 0; call < 3; ++call) {
    Tensor x = randn({4, 5}).set_requires_grad(true), ct = randn({4, 3});
    std::vector<Tensor> wanted = net.parameters();
    wanted.push_back(x);
    Tensor eager = net(x), compiled = f(x);
    expect_close({eager}, {compiled});
    expect_close(autograd::grad({eager}, wanted, {ct}), autograd::grad({compiled}, wanted, {ct}));
  }
  EXPECT_EQ(f.explain().graphs.size(), 1u);
}

TEST_P(Joint, GradientsAccumulateInLeaves) {
  Net net;
  auto f = compile([&](const Tensor& x) { return net(x).pow(2).sum(); }, options());
  Tensor x = randn({4, 5});
  f(x).backward();
  std::vector<Tensor> once;
  for (Tensor p : net.parameters()) once.push_back(p.grad().clone());
  f(x).backward();
  for (size_t i = 0; i < once.size(); ++i) expect_close({net.parameters()[i].grad()}, {once[i] * 2});
}

TEST_P(Joint, SeveralResultsUsedInPart) {
  Net net;
  auto f = compile(
      [&](const Tensor& x) {
        Tensor h = linear(x, net.w1, net.b1);
        return std::vector<Tensor>{h.sin(), linear(h.relu(), net.w2, {}), h.argmax(1)};
      },
      options());
  Tensor x = randn({4, 5});
  Tensor h = linear(x, net.w1, net.b1);
  std::vector<Tensor> eager = {h.sin(), linear(h.relu(), net.w2, {}), h.argmax(1)}, compiled = f(x);
  EXPECT_FALSE(compiled[2].requires_grad());
  expect_close(eager, compiled);
  for (int which : {0, 1}) {
    expect_close(autograd::grad({eager[which].sum()}, {net.w1, net.b1}, {}, true),
                 autograd::grad({compiled[which].sum()}, {net.w1, net.b1}, {}, true));
  }
  expect_close(autograd::grad({eager[0].sum() + eager[1].exp().sum()}, {net.w1, net.w2}),
               autograd::grad({compiled[0].sum() + compiled[1].exp().sum()}, {net.w1, net.w2}));
  EXPECT_THROW(compiled[0].sum().backward(), Error);  // the graph was freed
}

TEST_P(Joint, SecondDerivatives) {
  Net net;
  auto f = compile([&](const Tensor& x) { return net(x); }, options());
  Tensor x = randn({4, 5}).set_requires_grad(true);
  auto penalty = [&](const Tensor& y) {
    Tensor g = autograd::grad({y.pow(2).sum()}, {x}, {}, true, true)[0];
    std::vector<Tensor> wanted = net.parameters();
    wanted.push_back(x);
    return autograd::grad({g.pow(2).sum()}, wanted);
  };
  expect_close(penalty(net(x)), penalty(f(x)), 1e-4);
}

TEST_P(Joint, SecondDerivativesInsideOfTheFunction) {
  Net net;
  Tensor x = randn({4, 5}).set_requires_grad(true);
  auto step = [&](const Tensor& at) {
    Tensor g = autograd::grad({net(at).pow(2).sum()}, {at}, {}, true, true)[0];
    return autograd::grad({g.pow(2).sum()}, net.parameters());
  };
  auto f = compile(step, options());
  expect_close(step(x), f(x), 1e-4);
}

// Of a square matrix whose sizes are known, parts of the factors are results of the call: the second derivative flows through either way.
TEST_P(Joint, SecondDerivativesThroughResultsOfKnownSizes) {
  auto f = [](const Tensor& x) {
    auto [p, l, u] = linalg_lu(x);
    Tensor g = autograd::grad({l.square().sum() + u.sin().sum()}, {x}, {}, true, true)[0];
    return autograd::grad({(g * g.detach().cos()).sum()}, {x});
  };
  Tensor x = (randn({3, 3}) + 4 * eye(3)).requires_grad_();
  expect_close(f(x), compile(f, options())(x), 1e-4);
}

TEST_P(Joint, DetachAndNoGradInside) {
  Net net;
  auto body = [&](const Tensor& x) {
    Tensor h = linear(x, net.w1, net.b1), fixed;
    {
      NoGradGuard guard;
      fixed = h.exp();
    }
    return h * h.detach().sin() + fixed * net.b1;
  };
  auto f = compile(body, options());
  Tensor x = randn({4, 5}).set_requires_grad(true);
  auto all = [&](const Tensor& y, bool twice) {
    std::vector<Tensor> g = autograd::grad({y.pow(2).sum()}, {x, net.w1, net.b1}, {}, twice, twice);
    return twice ? autograd::grad({g[0].pow(2).sum()}, {x, net.w1}) : g;
  };
  expect_close(all(body(x), false), all(f(x), false));
  expect_close(all(body(x), true), all(f(x), true), 1e-4);
}

TEST_P(Joint, ViewsAndWrites) {
  Net net;
  auto body = [&](const Tensor& x) {
    Tensor h = linear(x, net.w1, net.b1).view({2, 2, 8}).permute({1, 0, 2});
    Tensor out = zeros({2, 2, 8});
    out.select(0, 0).copy_(h[0]);
    out.select(0, 1).add_(h[1] * 2);
    return out.mul_(h.sigmoid()).reshape({4, 8});
  };
  auto f = compile(body, options());
  Tensor x = randn({4, 5}).set_requires_grad(true), ct = randn({4, 8});
  expect_close({body(x)}, {f(x)});
  expect_close(autograd::grad({body(x)}, {x, net.w1, net.b1}, {ct}), autograd::grad({f(x)}, {x, net.w1, net.b1}, {ct}));
}

TEST_P(Joint, AnInputThatIsWritten) {
  auto body = [](const Tensor& x, const Tensor& state) {
    Tensor y = x * state;
    state.add_(1);
    return y * state;
  };
  auto f = compile(body, options());
  Tensor x = randn({6}).set_requires_grad(true), a = ones({6}) * 2, b = a.clone();
  Tensor eager = body(x, a), compiled = f(x, b);
  expect_close({eager, a}, {compiled, b});
  // Eager autograd refuses, because `state` was written after it was saved; the compiled function keeps what it needs.
  expect_close(autograd::grad({compiled.sum()}, {x}), {full({6}, 6.0)});
}

TEST_P(Joint, OnlyWhatBackwardNeedsIsKept) {
  if (std::string(GetParam()) != "inductor") GTEST_SKIP() << "the others keep every value";
  Tensor w = randn({64, 64}).set_requires_grad(true);
  auto f = compile(
      [&](const Tensor& x) {
        Tensor h = matmul(x, w);
        for (int i = 0; i < 8; ++i) h = h.sin() * 1.5 + 0.25;
        return h.sum();
      },
      options());
  Tensor x = randn({256, 64});
  f(x);
  int64_t before = memory_stats().allocated;
  Tensor y = f(x);
  // One [256, 64] value in the chain, from which the rest is made again.
  EXPECT_LE(memory_stats().allocated - before, 256 * 64 * 4 + 4096);
  y.backward();
}

TEST_P(Joint, HooksAndCustomFunctionsInside) {
  struct Twice : autograd::Function<Twice> {
    static Tensor forward(autograd::AutogradContext*, const Tensor& x) { return x * 2; }
    static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
      return {g[0] * 3};
    }
  };
  Tensor w = randn({5}).set_requires_grad(true);
  int calls = 0;
  auto f = compile(
      [&](const Tensor& x) {
        Tensor h = (x * w).sin();
        h.register_hook([&](const Tensor& g) {
          ++calls;
          return g * 2;
        });
        return Twice::apply(h).exp();
      },
      options());
  Tensor x = randn({5});
  Tensor expected = (2 * (x * w).sin()).exp() * 3 * 2 * (x * w).cos() * x;
  expect_close(autograd::grad({f(x).sum()}, {w}), {expected});
  EXPECT_EQ(calls, 1);
}

TEST_P(Joint, FrozenParametersAreAnotherFlow) {
  Net net;
  auto f = compile([&](const Tensor& x) { return net(x).log().sum(); }, options());
  Tensor x = randn({4, 5});
  f(x).backward();
  EXPECT_TRUE(net.w1.grad().defined());
  net.w1.mutable_grad() = Tensor();
  net.w1.set_requires_grad(false);
  f(x).backward();
  EXPECT_FALSE(net.w1.grad().defined());
  net.w1.set_requires_grad(true);
  f(x).backward();
  EXPECT_TRUE(net.w1.grad().defined());
}

// A function of a leaf, called with many sizes in random order: gradients are eager's, whatever the sizes before were.
void expect_gradients_of_sizes(const CompileOptions& options, const std::function<Tensor(const Tensor&)>& function,
                               const std::vector<int64_t>& sizes) {
  auto f = compile(function, options);
  for (int64_t n : sizes) {
    SCOPED_TRACE(n);
    Tensor x = randn({3, n}).set_requires_grad(true), y = x.detach().clone().set_requires_grad(true);
    Tensor eager = function(x), compiled = f(y);
    expect_close({eager}, {compiled});
    if (!eager.requires_grad()) continue;
    Tensor ct = randn_like(eager.detach());
    eager.backward(ct);
    compiled.backward(ct);
    expect_close({x.grad()}, {y.grad()});
  }
}

std::vector<int64_t> shuffled_sizes() {
  std::vector<int64_t> sizes = {8, 10, 12, 9, 11, 4, 8, 8, 9, 8, 9, 12};
  uint32_t state = 12345;  // the seed
  for (int64_t n = 1; n <= 40; ++n) sizes.push_back(n);
  for (size_t i = sizes.size(); i-- > 13;) {
    state = state * 1664525 + 1013904223;
    std::swap(sizes[i], sizes[12 + state % (i - 11)]);
  }
  return sizes;
}

TEST_P(Joint, EverySecondColumn) {
  expect_gradients_of_sizes(
      options(), [](const Tensor& x) { return x.slice(1, 0, x.size(1), 2).sin(); }, shuffled_sizes());
}

TEST_P(Joint, FirstHalf) {
  expect_gradients_of_sizes(
      options(), [](const Tensor& x) { return x.narrow(1, 0, x.size(1) / 2).exp().sum(); }, shuffled_sizes());
  expect_gradients_of_sizes(options(), [](const Tensor& x) { return x.chunk(2, 1)[0].cos(); }, shuffled_sizes());
}

TEST_P(Joint, WriteIntoTheMiddle) {
  expect_gradients_of_sizes(
      options(),
      [](const Tensor& x) {
        Tensor p = x * 1;
        p.narrow(1, x.size(1) / 2, 1).mul_(3);
        return (p * x).sum();
      },
      shuffled_sizes());
}

TEST_P(Joint, ANumberThatChanges) {
  struct Case {
    const char* name;
    std::function<Tensor(const Tensor&, double)> f;
  };
  const Case cases[] = {
      {"mul", [](const Tensor& w, double k) { return (w * k).sum(); }},
      {"loss", [](const Tensor& w, double k) { return w.sum() + k * w.square().sum(); }},
      {"pow", [](const Tensor& w, double k) { return w.pow(1 + k).sum(); }},
      {"clamp", [](const Tensor& w, double k) { return w.clamp(Scalar(-k), Scalar(k)).sum(); }},
      {"elu", [](const Tensor& w, double k) { return elu(w - 1, k).sum(); }},
      {"leaky_relu", [](const Tensor& w, double k) { return leaky_relu(w - 1, k).sum(); }},
      {"alpha", [](const Tensor& w, double k) { return add(w, w.square(), k).sum(); }},
      {"addcmul", [](const Tensor& w, double k) { return addcmul(w, w, w, k).sum(); }},
      {"huber", [](const Tensor& w, double k) { return huber_loss(w, w.detach() * 2, 1, k + 0.01); }},
      {"div", [](const Tensor& w, double k) { return (w / (k + 0.5)).sum(); }},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    double k = 0;
    Tensor w = (rand({5}) + 0.5).set_requires_grad(true), v = w.detach().clone().set_requires_grad(true);
    auto f = compile([&](const Tensor& t) { return c.f(t, k); }, options());
    for (double value : {0.0, 0.1, 0.2, 0.3, 0.4, 0.3}) {
      k = value;
      w.mutable_grad().reset();
      v.mutable_grad().reset();
      c.f(w, k).backward();
      f(v).backward();
      expect_close({w.grad()}, {v.grad()});
    }
  }
}

TEST_P(Joint, OneOperandTwiceOnceDetached) {
  expect_gradients_of_sizes(options(), [](const Tensor& x) { return (x.detach() * x + x * x).sum(); }, {4, 5, 6});
}

TEST_P(Joint, ALeafBesideItsView) {
  Tensor w = randn({3, 4}).set_requires_grad(true), v = w.detach().clone().set_requires_grad(true);
  auto function = [](const Tensor& a, const Tensor& b) { return (a.reshape({3, 4}) * b.sin()).sum(); };
  auto f = compile(function, options());
  for (int call = 0; call < 2; ++call) {
    function(w.view({12}), w).backward();
    f(v.view({12}), v).backward();
    function(w * 2, w).backward();
    f(v * 2, v).backward();
    expect_close({w.grad()}, {v.grad()});
  }
}

TEST_P(Joint, ViewsOfViewsThatCoverTheirBase) {
  expect_gradients_of_sizes(options(),
                            [](const Tensor& x) {
                              Tensor y = x * 2, u = y.t(), v = u.t();
                              return (u * 3).sum() + (v * 5).cos().sum() + v.select(0, 1).sum() +
                                     y.view({-1}).view_as(y).exp().sum();
                            },
                            {4, 5, 6, 3});
}

TEST_P(Joint, WritesIntoViewsOfViews) {
  expect_gradients_of_sizes(options(),
                            [](const Tensor& x) {
                              Tensor p = x.clone(), row = p.select(0, 1), part = row.narrow(0, 1, 2);
                              part.mul_(x.select(0, 0).narrow(0, 0, 2));
                              row.add_(x.select(0, 2));
                              p.t().mul_(2);
                              return p.sin().sum() + part.exp().sum();
                            },
                            {4, 5, 6, 7, 4});
}

// Its output and the logarithms of its sums, which the derivative reads, are those of the forward part.
TEST_P(Joint, AttentionIsNotComputedAgain) {
  for (bool masked : {false, true}) {
    auto tokens = [] { return randn({2, 3, 40, 16}).set_requires_grad(true); };
    Tensor q = tokens(), k = tokens(), v = tokens(), mask = masked ? ones({40, 40}, kBool).tril() : Tensor();
    auto loss = [&](const Tensor& q) { return scaled_dot_product_attention(q, k, v, mask).pow(2).sum(); };
    std::vector<Tensor> expected = autograd::grad({loss(q)}, {q, k, v});
    auto step = compile([&](const Tensor& q) { return autograd::grad({loss(q)}, {q, k, v}); }, options());
    expect_close(expected, step(q));
    if (GetParam() != std::string("inductor")) continue;
    const std::string kernels = step.explain().graphs.at(0).kernels;
    int products = 0;
    for (size_t at = 0; (at = kernels.find("dot_general", at)) != std::string::npos; ++at) ++products;
    EXPECT_EQ(products, 6) << kernels;  // two forward, and those that give dV, dP, dQ and dK
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Joint, ::testing::Values("inductor", "aot_eager", "interpreter", "eager"));

}  // namespace
}  // namespace brasa
