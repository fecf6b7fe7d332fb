#include <gtest/gtest.h>

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

INSTANTIATE_TEST_SUITE_P(Backends, Joint, ::testing::Values("inductor", "aot_eager", "interpreter", "eager"));

}  // namespace
}  // namespace brasa
