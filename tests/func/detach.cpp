// What is detached has no derivative of any order, in functions that are transformed and in bodies of control flow.
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/control_flow.h>
#include <brasa/func.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

Tensor values(std::vector<int64_t> sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return (arange(n).to(kFloat64) * 0.37 + 0.3).sin().reshape(sizes);
}

using OfOne = std::function<Tensor(const Tensor&)>;

// Results, first and second derivatives of f, compiled on each backend, are eager's.
void check(const OfOne& f, const Tensor& at) {
  auto run = [&](const OfOne& g) {
    Tensor x = at.clone().requires_grad_(), y = g(x);
    Tensor first = autograd::grad({y.square().sum()}, {x}, {}, true, true)[0];
    return std::vector{y, first, autograd::grad({first.sin().sum()}, {x})[0]};
  };
  std::vector<Tensor> want = run(f);
  for (std::string backend : {"inductor", "interpreter", "aot_eager"}) {
    CompileOptions options;
    options.backend = backend;
    auto compiled = compile([&](Tensor x) { return f(x); }, options);
    std::vector<Tensor> got = run([&](const Tensor& x) { return compiled(x); });
    for (size_t i = 0; i < want.size(); ++i)
      EXPECT_TRUE(allclose(want[i], got[i], 1e-9, 1e-9)) << backend << ", derivative " << i << "\n"
                                                         << want[i] << "\n"
                                                         << got[i];
  }
}

Tensor partly(const Tensor& x) { return x.detach().sin() * x * x + (x * x.detach()).exp(); }

TEST(Detach, InBranches) {
  auto f = [](const Tensor& x) {
    return cond(
        x.sum() > 0, [](Tensor x) { return partly(x); }, [](Tensor x) { return partly(x * 2).detach() * x.sin(); }, x);
  };
  check(f, values({4}));
  check(f, -values({4}));
}

TEST(Detach, InLoops) {
  check([](const Tensor& x) { return map([](Tensor row) { return partly(row); }, x); }, values({3, 4}));
  check(
      [](const Tensor& x) {
        auto step = [](Tensor h, Tensor x) {
          Tensor next = (h * x).sin() * x.detach() + h.detach() * h;
          return std::pair(next, next * x);
        };
        auto [last, all] = scan(step, ones({3}, kFloat64), x);
        return last.sum() + all.sum();
      },
      values({4, 3}));
}

TEST(Detach, OfManyCalls) {
  auto one = [](Tensor x) {
    return cond(x.sum() > 0, [](Tensor x) { return partly(x); }, [](Tensor x) { return x * x.detach(); }, x);
  };
  check([&](const Tensor& x) { return func::vmap(one)(x); }, values({5, 2}));
}

TEST(Detach, HasNoTangent) {
  Tensor x = values({4}), t = values({4}) + 1;
  auto tangent = [&](auto f) { return func::jvp(f, x, t).second[0]; };
  EXPECT_TRUE(allclose(tangent([](Tensor x) { return x * x.detach(); }), x * t));
  EXPECT_TRUE(allclose(tangent([](Tensor x) { return x * x.detach().exp()[1]; }), t * x.exp()[1]));
  EXPECT_TRUE(allclose(tangent([](Tensor x) { return x.sin() + x[2].detach(); }), t * x.cos()));
  EXPECT_TRUE(allclose(tangent([](Tensor x) { return x.detach(); }), zeros_like(x)));
  EXPECT_TRUE(allclose(tangent([](Tensor x) {
                         Tensor fixed = x.detach().clone();
                         fixed.mul_(x);
                         return fixed;
                       }),
                       x * t));
  auto f = [&](Tensor x) { return tangent([&](Tensor y) { return x * y.detach() * y; }); };
  EXPECT_TRUE(allclose(compile(f)(x), f(x)));
}

TEST(Detach, AtEveryLevel) {
  Tensor x = values({3});
  auto f = [](Tensor x) { return (x * x.detach()).sum(); };
  EXPECT_TRUE(allclose(func::hessian(f)(x), zeros({3, 3}, kFloat64)));
  auto gradient = func::grad(f);
  EXPECT_TRUE(allclose(func::grad([&](Tensor x) { return gradient(x).sum(); })(x), zeros_like(x)));
  auto mapped = [](Tensor x) { return func::vmap([](Tensor x) { return x * x.detach(); })(x).sum(); };
  EXPECT_TRUE(allclose(func::grad(mapped)(x), x));
}

// Dropout that is off draws nothing, also where a body may not draw.
TEST(Bodies, WhatDrawsNothingIsNotRandom) {
  bool training = false;
  auto f = [&](const Tensor& x) {
    auto body = [&](Tensor row) {
      return cond(
          row.sum() > 0,
          [&](Tensor r) {
            return alpha_dropout(feature_dropout(dropout(r, 0.5, training), 0.2, false), 0.1, false).tanh();
          },
          [](Tensor r) { return dropout(r.sin(), 0.5, false); }, row.unsqueeze(0));
    };
    return map(body, x);
  };
  check(f, values({5, 4}));
  auto after = [&](const OfOne& g) {
    manual_seed(5);
    g(values({5, 4}));
    return rand({3});
  };
  EXPECT_TRUE(equal(after(f), after([c = compile([&](Tensor x) { return f(x); })](const Tensor& x) { return c(x); })));
  training = true;
  EXPECT_THROW(compile(f, {.fullgraph = true})(values({5, 4})), Error);
}

// A loop that nothing needs a gradient of has no part in the derivative's derivative, though what its operand was detached from has.
TEST(Detach, LoopsBesideSecondDerivatives) {
  auto f = [](const Tensor& x) {
    auto more = [](Tensor n, Tensor) { return n < 3; };
    auto step = [](Tensor n, Tensor t) { return std::pair(n + 1, t * 0.5 + t.sin()); };
    Tensor h = x.exp();
    return h * while_loop(more, step, zeros({}, kFloat64), h.detach()).second;
  };
  check(f, values({3}));
}

}  // namespace
}  // namespace brasa
