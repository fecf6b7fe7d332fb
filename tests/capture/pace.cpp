// Functions whose calls are faster as they are.
#include <chrono>
#include <thread>

#include <brasa/autograd.h>
#include <brasa/backend.h>
#include <brasa/device.h>

#include "tensor/recorder.h"
#include "values.h"

namespace brasa {
namespace {

constexpr int kCalls = 160;  // more than it takes to find out

// A backend whose graphs take longer, and how often they have run.
int* slow_backend() {
  static int runs = 0;
  register_backend("slow", [](const CapturedGraph& graph) -> GraphFunction {
    return [f = graph.compile("inductor")](const std::vector<Tensor>& inputs) {
      ++runs;
      std::this_thread::sleep_for(std::chrono::microseconds(300));
      return f(inputs);
    };
  });
  return &runs;
}

CompileOptions slow(const char* fall_back) { return {.backend = "slow", .options = {{"fall_back", fall_back}}}; }

class Pace : public testing::Test {
 protected:
  void SetUp() override {
    if (get_default_device() != Device(kCPU)) GTEST_SKIP() << "only the host's calls are measured";
    *runs = 0;
  }
  int* runs = slow_backend();
};

TEST_F(Pace, SlowGraphsGiveWay) {
  int bodies = 0;
  auto f = [&](const Tensor& x, const Tensor& sum) {
    ++bodies;
    sum.add_(x);
    return x.sin() + 1;
  };
  auto g = compile(f, slow("true"));
  Tensor x = numbers({3}), sum = zeros({3});
  for (int i = 0; i < kCalls; ++i) expect_close(g(x, sum), x.sin() + 1);
  EXPECT_EQ(bodies, kCalls);
  expect_close(sum, x * kCalls);
  EXPECT_LT(*runs, kCalls / 2);
  EXPECT_NE(g.explain().str().find("calls run as they are"), std::string::npos) << g.explain().str();

  // Calls of another size are compiled, as soon as one is looked at.
  Tensor y = numbers({4}), total = zeros({4});
  int before = 0;
  for (; before < 140 && !g.explain().slower.empty(); ++before) expect_close(g(y, total), y.sin() + 1);
  EXPECT_LT(before, 140);
  // Of the first ones it is known.
  for (int i = 0; i < 30; ++i) g(x, sum);
  EXPECT_NE(g.explain().slower, "");
}

// Views run no graph: what takes long is to record them.
TEST_F(Pace, WithoutAGraph) {
  auto g = compile([](const Tensor& t) {
    if (Recorder::current()) std::this_thread::sleep_for(std::chrono::microseconds(100));
    return t.t();
  });
  Tensor x = numbers({3, 2});
  for (int i = 0; i < kCalls; ++i) EXPECT_TRUE(g(x).is_alias_of(x));
  EXPECT_NE(g.explain().slower, "");
}

// What fits no graph is recorded in vain.
TEST_F(Pace, BeyondTheLimit) {
  auto g = compile(
      [](const Tensor& t) {
        if (Recorder::current()) std::this_thread::sleep_for(std::chrono::microseconds(100));
        return t.sin() * t;
      },
      {.dynamic = false, .recompile_limit = 1});
  g(numbers({3}));
  Tensor x = numbers({4});
  for (int i = 0; i < kCalls; ++i) expect_close(g(x), x.sin() * x);
  EXPECT_NE(g.explain().slower, "");
}

// A plain call is plain in the compiled functions that it calls, too.
TEST_F(Pace, FunctionsInside) {
  auto inner = compile([](const Tensor& t) { return t.sin() * 2; }, slow("false"));
  auto g = compile([&](const Tensor& t) { return inner(t) + 1; }, slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < kCalls; ++i) expect_close(g(x), x.sin() * 2 + 1);
  EXPECT_NE(g.explain().slower, "");
  EXPECT_LT(*runs, kCalls / 2);
}

TEST_F(Pace, BreaksAndStepsInsideAreMeasured) {
  Tensor w = ones({3}).requires_grad_();
  auto step = [&](const Tensor& x) {
    w.mutable_grad().reset();
    Tensor loss = (x * w).sum();
    loss.backward();
    return loss.item<float>() > 0 ? w.grad() * 2 : w.grad();
  };
  auto g = compile(step, slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < kCalls; ++i) expect_close(g(x), step(x));
  EXPECT_NE(g.explain().slower, "");
}

// The backward pass counts, whichever half is slow; passes may come late, for several calls at once, for few of them, or not at all.
TEST_F(Pace, BackwardPassesOutside) {
  Tensor x = numbers({3}), w = ones({3}).requires_grad_();
  auto f = [&](const Tensor& t) { return (t * w).sin() * w; };
  auto expected = [&](int calls) { return autograd::grad({f(x).sum()}, {w})[0] * calls; };
  for (int together : {1, 5}) {
    *runs = 0;
    auto g = compile(f, slow("true"));
    for (int i = 0; i < kCalls; i += together) {
      Tensor sum = zeros({});
      for (int k = 0; k < together; ++k) sum = sum + g(x).sum();
      expect_close(autograd::grad({sum}, {w})[0], expected(together));
    }
    EXPECT_NE(g.explain().slower, "") << together;
    EXPECT_LT(*runs, kCalls + kCalls / 2);
  }
  for (int every : {7, 2 * kCalls}) {
    auto g = compile(f, slow("true"));
    for (int i = 1; i <= kCalls; ++i) {
      Tensor y = g(x);
      if (i % every == 0) expect_close(autograd::grad({y.sum()}, {w})[0], expected(1));
    }
    EXPECT_NE(g.explain().slower, "") << every;
  }
}

TEST_F(Pace, ASlowBackwardPassIsPartOfTheCall) {
  // The plain call's operators take longer in the backward pass alone.
  struct Slow : autograd::Function<Slow> {
    static Tensor forward(autograd::AutogradContext*, const Tensor& t) { return t * 1; }
    static autograd::variable_list backward(autograd::AutogradContext*, autograd::variable_list g) {
      if (!Recorder::current()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return {g[0] * 1};
    }
  };
  Tensor x = numbers({3}), w = ones({3}).requires_grad_();
  auto g = compile([&](const Tensor& t) { return Recorder::current() ? t * w : Slow::apply(t * w); });
  for (int i = 0; i < kCalls; ++i) g(x).sum().backward();
  EXPECT_EQ(g.explain().slower, "");
}

TEST_F(Pace, WhatIsNotMeasured) {
  Tensor x = numbers({3});
  auto calls = [&](auto f) {
    *runs = 0;
    for (int i = 0; i < 60; ++i) f(x);
    EXPECT_EQ(*runs, 60);
    EXPECT_EQ(f.explain().slower, "");
  };
  auto sine = [](const Tensor& t) { return t.sin(); };
  calls(compile(sine, slow("false")));
  calls(compile(sine, {.backend = "slow"}));
  auto of_many_kinds = [](const Tensor& t) {
    Tensor y = t;
    for (int i = 0; i < 9; ++i) y = y.sin().cos().tanh().exp().neg().abs().sqrt().relu().unsqueeze(0);
    return y;
  };
  calls(compile(of_many_kinds, slow("true")));
  // Two sizes in turn.
  auto g = compile(sine, slow("true"));
  *runs = 0;
  for (int i = 0; i < 30; ++i) {
    g(x);
    g(numbers({5}));
  }
  EXPECT_EQ(*runs, 60);
}

TEST_F(Pace, CallsOfAnotherThreadEndIt) {
  auto g = compile([](const Tensor& t) { return t.sin(); }, slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < 25; ++i) g(x);
  std::thread([&] { g(x); }).join();
  *runs = 0;
  for (int i = 0; i < 60; ++i) g(x);
  EXPECT_EQ(*runs, 60);
}

TEST_F(Pace, ErrorsWhileItMeasures) {
  int calls = 0;
  auto g = compile(
      [&](const Tensor& t) {
        if (++calls % 7 == 0) throw std::runtime_error("the seventh call");
        return t.sin();
      },
      slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < 100; ++i) {
    if (calls % 7 == 6)
      EXPECT_THROW(g(x), std::runtime_error);
    else
      expect_close(g(x), x.sin());
  }
  EXPECT_EQ(calls, 100);
}

TEST_F(Pace, OtherThreadsAreCompiled) {
  auto g = compile([](const Tensor& t) { return t.sin(); }, slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < kCalls; ++i) g(x);
  EXPECT_NE(g.explain().slower, "");
  *runs = 0;
  std::thread([&] {
    for (int i = 0; i < 5; ++i) g(x);
  }).join();
  EXPECT_EQ(*runs, 5);
  EXPECT_EQ(g.explain().slower, "");
}

TEST_F(Pace, CallsThatTakeLongerAreLookedAt) {
  auto g = compile(
      [](const Tensor& t) {
        if (t.size(0) > 3) std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return t.sin();
      },
      slow("true"));
  Tensor x = numbers({3}), y = numbers({4});
  for (int i = 0; i < kCalls; ++i) g(x);
  *runs = 0;
  for (int i = 0; i < 10; ++i) g(y);  // one of eight is timed
  EXPECT_GE(*runs, 1);
}

// Calls that begin alike, and go ways of their own behind a break.
TEST_F(Pace, CallsThatOnlyBeginAlike) {
  unsigned way = 1;
  auto body = [&](const Tensor& t) {
    Tensor u = t.sin();
    way = way * 1664525 + 1013904223;  // no two ways in a row stay the same for long
    return u.sum().item<float>() + float(way >> 24) > 127 ? u + 1 : u * 2;
  };
  auto g = compile(body, slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < 2 * kCalls; ++i) {
    unsigned before = way;
    Tensor got = g(x);
    way = before;
    expect_close(got, body(x));
  }
  EXPECT_NE(g.explain().slower, "");
  EXPECT_LT(*runs, 2 * kCalls);

  // Where the graphs are faster, they stay.
  auto h = compile([&](const Tensor& t) {
    if (!Recorder::current()) std::this_thread::sleep_for(std::chrono::microseconds(500));
    return body(t);
  });
  for (int i = 0; i < 2 * kCalls; ++i) h(x);
  EXPECT_EQ(h.explain().slower, "");
}

// A body that asks gets the same answer in all calls, and what disable() gave another one.
TEST_F(Pace, BodiesAreCompiledOnes) {
  auto asked = disable([] { return is_compiling(); });
  int yes = 0, disabled = 0;
  auto g = compile(
      [&](const Tensor& t) {
        yes += is_compiling();
        disabled += asked();
        return t.sin();
      },
      slow("true"));
  Tensor x = numbers({3});
  for (int i = 0; i < kCalls; ++i) g(x);
  EXPECT_LT(*runs, kCalls / 2);
  EXPECT_EQ(yes, kCalls);
  EXPECT_EQ(disabled, 0);
  EXPECT_FALSE(is_compiling());
}

TEST_F(Pace, NoCallIsPlainWhereNaNsAreTraced) {
  auto g = compile([](const Tensor& t) { return t.log() * 2; }, {.options = {{"trace_nan", "true"}}});
  Tensor x = numbers({3}).abs() + 1, y = -x;
  for (int i = 0; i < kCalls; ++i) g(x);
  for (int i = 0; i < 3; ++i) EXPECT_THROW(g(y), Error);
}

// A plain call that takes longer by far: the graphs stay.
TEST_F(Pace, FastGraphsStay) {
  auto g = compile([](const Tensor& t) {
    if (!Recorder::current()) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return t.sin();
  });
  Tensor x = numbers({3});
  for (int i = 0; i < 60; ++i) g(x);
  EXPECT_EQ(g.explain().slower, "");
}

}  // namespace
}  // namespace brasa
