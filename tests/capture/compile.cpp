#include "values.h"

namespace brasa {
namespace {

// Every backend gives eager's values; the interpreter shows what capture alone does.
class Compile : public ::testing::TestWithParam<const char*> {
 protected:
  CompileOptions options() const {
    CompileOptions o;
    o.backend = GetParam();
    return o;
  }
};
INSTANTIATE_TEST_SUITE_P(Backends, Compile, ::testing::Values("interpreter", "inductor", "eager", "aot_eager"),
                         [](const auto& info) { return std::string(info.param); });

TEST_P(Compile, PointwiseAndReduction) {
  auto f = [](const Tensor& x, const Tensor& y) { return ((x * y + 1).tanh() * x).sum({1}); };
  auto g = compile(f, options());
  Tensor x = numbers({3, 5}), y = numbers({5});
  for (int i = 0; i < 3; ++i) expect_close(g(x + i, y), f(x + i, y));
  Explanation e = g.explain();
  EXPECT_EQ(e.graphs.size(), 1u) << e.str();
  EXPECT_TRUE(e.breaks.empty());
}

TEST_P(Compile, OneMoreGraphForAllOtherShapes) {
  auto f = [](const Tensor& x) { return (x * 2 + 1).relu(); };
  auto g = compile(f, options());
  for (int64_t n : {4, 1, 0, 7, 4}) expect_close(g(numbers({n, 3})), f(numbers({n, 3})));
  Explanation e = g.explain();
  EXPECT_EQ(e.graphs.size(), 2u);
  EXPECT_EQ(e.recompiles.size(), 1u);
}

TEST_P(Compile, WritesReachTheCallersTensors) {
  auto f = [](const Tensor& x, const Tensor& y) {
    x.add_(y);
    x.select(0, 1).mul_(3);
    Tensor v = x.transpose(0, 1);
    v.narrow(0, 0, 1).zero_();
    return x.sum() + v.sum();
  };
  auto g = compile(f, options());
  Tensor a = numbers({3, 4}), b = a.clone(), y = numbers({3, 4});
  Tensor ra = f(a, y), rb = g(b, y);
  expect_close(ra, rb);
  expect_close(a, b);
}

TEST_P(Compile, BranchesOnValuesBreakTheGraph) {
  auto f = [](const Tensor& x) {
    Tensor s = (x * x).sum();
    if (s.item<float>() > 5) return x * s;
    return x - s;
  };
  auto g = compile(f, options());
  for (float scale : {0.1f, 3.f, 0.2f, 4.f}) expect_close(g(numbers({6}) * scale), f(numbers({6}) * scale));
  Explanation e = g.explain();
  EXPECT_EQ(e.breaks.size(), 1u);
  EXPECT_EQ(e.graphs.size(), 3u) << e.str();
}

TEST_P(Compile, FullGraphRefusesABreak) {
  CompileOptions o = options();
  o.fullgraph = true;
  auto g = compile([](const Tensor& x) { return x * x.sum().item<float>(); }, o);
  try {
    g(numbers({3}));
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("item"), std::string::npos) << e.what();
  }
  // The thread records nothing any more.
  expect_close(numbers({3}) * 2, numbers({3}) + numbers({3}));
}

TEST_P(Compile, WholeTrainingStep) {
  auto make = [] {
    Tensor w = numbers({4, 3}).clone(), b = numbers({4}).clone();
    return std::vector<Tensor>{w.requires_grad_(), b.requires_grad_()};
  };
  auto step = [](std::vector<Tensor>& p, const Tensor& x, const Tensor& y) {
    for (Tensor& t : p) t.mutable_grad().reset();
    Tensor loss = (x.matmul(p[0].t()) + p[1]).tanh().sub(y).square().mean();
    loss.backward();
    NoGradGuard guard;
    for (Tensor& t : p) t.sub_(t.grad() * 0.5);
    return loss.detach();
  };
  Tensor x = numbers({6, 3}), y = numbers({6, 4});
  std::vector<Tensor> eager = make(), compiled = make();
  auto fast = compile([&](const Tensor& a, const Tensor& b) { return step(compiled, a, b); }, options());
  for (int i = 0; i < 5; ++i) expect_close(fast(x, y), step(eager, x, y));
  for (int k = 0; k < 2; ++k) {
    expect_close(compiled[k].detach(), eager[k].detach());
    expect_close(compiled[k].grad(), eager[k].grad());
  }
  Explanation e = fast.explain();
  EXPECT_EQ(e.graphs.size(), 1u) << e.str();
  EXPECT_TRUE(e.breaks.empty());
}

TEST_P(Compile, GradientsThroughViews) {
  auto f = [](const Tensor& x) {
    Tensor a = x.slice(1, 1, 6, 2).transpose(0, 1).reshape({-1});
    Tensor b = x.unfold(1, 3, 2).mul(2).sum();
    Tensor c = x.select(0, 1).unsqueeze(0).expand({3, 6}).square().sum();
    Tensor loss = a.exp().sum() + b + c;
    return autograd::grad({loss}, {x})[0];
  };
  auto g = compile(f, options());
  Tensor x = numbers({4, 6}).set_requires_grad(true);
  expect_close(g(x), f(x));
  expect_close(g(x), f(x));
  EXPECT_TRUE(g.explain().breaks.empty());
}

TEST_P(Compile, ForwardAloneThenBackwardOutside) {
  auto f = [](const Tensor& x) { return (x * x).tanh().sum(); };
  auto g = compile(f, options());
  for (int i = 0; i < 2; ++i) {
    Tensor a = numbers({5}).requires_grad_(), b = numbers({5}).requires_grad_();
    f(a).backward();
    g(b).backward();
    expect_close(a.grad(), b.grad());
  }
}

TEST_P(Compile, RandomNumbersAreEagers) {
  auto f = [](const Tensor& x) {
    Tensor y = dropout(x, 0.5, true) + dropout(x, 0.3, true) * rand_like(x);
    return y + autograd::grad({y.sum()}, {x})[0];
  };
  auto g = compile(f, options());
  Tensor x = ones({37}).set_requires_grad(true);
  manual_seed(3);
  Tensor a = f(x), a2 = f(x);
  manual_seed(3);
  expect_close(g(x), a);
  expect_close(g(x), a2);
}

TEST_P(Compile, ACompiledFunctionInsideAnother) {
  auto inner = compile([](const Tensor& x) { return x.sin(); }, options());
  auto outer = compile([&](const Tensor& x) { return inner(x) * 2; }, options());
  expect_close(outer(numbers({4})), numbers({4}).sin() * 2);
  EXPECT_TRUE(inner.explain().graphs.empty());
}

TEST(CompileOptionsTest, UnknownNamesAreErrors) {
  EXPECT_THROW(compile([](Tensor x) { return x; }, {.backend = "nope"}), Error);
  EXPECT_THROW(compile([](Tensor x) { return x; }, {.mode = "nope"}), Error);
  EXPECT_THROW(compile([](Tensor x) { return x; }, {.options = {{"numbers", "exact"}}}), Error);
}

TEST(CompileErrors, AnExceptionOfTheFunctionEndsTheRecording) {
  auto g = compile([](const Tensor& x) -> Tensor {
    Tensor y = x * 2;
    throw std::runtime_error("stop");
    return y;
  });
  EXPECT_THROW(g(numbers({3})), std::runtime_error);
  EXPECT_THROW(g(numbers({3})), std::runtime_error);
  expect_close(numbers({3}) * 2, numbers({3}) + numbers({3}));
}

}  // namespace
}  // namespace brasa
