#include <brasa/amp.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/checkpoint.h>
#include <brasa/compile.h>
#include <brasa/optim.h>
#include <gtest/gtest.h>

#include <cmath>

#include "runtime/emu/inject.h"

namespace brasa {
namespace {

using amp::GradScaler;
using amp::GradScalerOptions;

void set_gradient(Tensor& p, double value) { p.mutable_grad() = full(p.sizes(), value); }

TEST(GradScaler, ScalesLossesAndUnscalesGradients) {
  Tensor p = ones({2}, requires_grad());
  optim::SGD optimizer(std::vector<Tensor>{p}, 0.5);
  GradScaler scaler(GradScalerOptions(8.0));
  scaler.scale((p * 3).sum()).backward();
  EXPECT_TRUE(p.grad().equal(full({2}, 24.0)));
  scaler.unscale_(optimizer);
  EXPECT_TRUE(p.grad().equal(full({2}, 3.0)));
  EXPECT_THROW(scaler.unscale_(optimizer), Error);
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_TRUE(p.equal(full({2}, -0.5)));
  EXPECT_THROW(scaler.step(optimizer), Error);
  EXPECT_THROW(scaler.unscale_(optimizer), Error);
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 8.0);
  EXPECT_EQ(scaler.get_growth_tracker(), 1);
}

TEST(GradScaler, LeavesOutStepsThatAreNotFiniteAndChangesTheScale) {
  Tensor p = ones({2}, requires_grad()), q = ones({1}, requires_grad());
  optim::SGD optimizer(std::vector<Tensor>{p, q}, 0.5);
  GradScaler scaler(GradScalerOptions(4.0).growth_factor(3.0).backoff_factor(0.25).growth_interval(2));
  for (double bad : {std::nan(""), double(INFINITY)}) {
    set_gradient(p, 1);
    set_gradient(q, bad);
    double scale = scaler.get_scale();
    bool taken = scaler.step(optimizer);
    EXPECT_TRUE(!taken || !p.is_cpu());  // a GPU keeps that to itself
    scaler.update();
    EXPECT_TRUE(p.equal(ones({2})));
    EXPECT_EQ(scaler.get_scale(), scale * 0.25);
  }
  for (int i = 0; i < 2; ++i) {
    set_gradient(p, 0);
    set_gradient(q, 0);
    EXPECT_TRUE(scaler.step(optimizer));
    scaler.update();
  }
  EXPECT_EQ(scaler.get_scale(), 0.75);
  EXPECT_EQ(scaler.get_growth_tracker(), 0);
  scaler.set_growth_factor(1e38);
  scaler.update(1e10);
  for (int i = 0; i < 2; ++i) {
    scaler.step(optimizer);
    scaler.update();
  }
  EXPECT_EQ(scaler.get_scale(), 1e10);  // an infinite scale is not taken
}

// The steps after the first one on a GPU: nobody waits, and they are the CPU's.
TEST(GradScaler, OnAGpuNobodyWaits) {
  struct Run {
    Tensor a, b;
    std::unique_ptr<optim::Optimizer> optimizer;
    GradScaler scaler{GradScalerOptions(64.0).growth_interval(3)};
    void step(double bad) {
      optimizer->zero_grad();
      Tensor loss = (a * a).sum() + (b * 3 * bad).sum();
      scaler.scale(loss).backward();
      scaler.step(*optimizer);
      scaler.update();
    }
  };
  auto make = [](Run& r, Device device, bool adam) {
    r.a = arange(6, kFloat32).to(device).set_requires_grad(true);
    r.b = ones({2}).to(device).set_requires_grad(true);
    std::vector<Tensor> both = {r.a, r.b};
    if (adam)
      r.optimizer = std::make_unique<optim::Adam>(both, optim::AdamOptions(0.1));
    else
      r.optimizer = std::make_unique<optim::SGD>(both, optim::SGDOptions(0.01).momentum(0.9));
  };
  for (bool adam : {true, false}) {
    Run cpu, gpu;
    make(cpu, kCPU, adam);
    make(gpu, Device("emu"), adam);
    cpu.step(1);
    gpu.step(1);
    int64_t waits = runtime::emu::waits(0);
    for (double bad : {1.0, double(INFINITY), 1.0, 1.0, double(NAN), 1.0}) gpu.step(bad);
    EXPECT_EQ(runtime::emu::waits(0), waits);
    for (double bad : {1.0, double(INFINITY), 1.0, 1.0, double(NAN), 1.0}) cpu.step(bad);
    EXPECT_TRUE(allclose(gpu.a.cpu(), cpu.a, 1e-5, 1e-6)) << gpu.a << cpu.a;
    EXPECT_TRUE(allclose(gpu.b.cpu(), cpu.b, 1e-5, 1e-6)) << gpu.b << cpu.b;
    EXPECT_EQ(gpu.scaler.get_scale(), cpu.scaler.get_scale());
    EXPECT_EQ(gpu.scaler.get_growth_tracker(), cpu.scaler.get_growth_tracker());
    EXPECT_GT(runtime::emu::waits(0), waits);  // they are counted
  }
}

TEST(GradScaler, SmallGradientsOfHalfSurvive) {
  Tensor x = full({1}, 1e-4, kFloat16), w = full({1}, 1.0).set_requires_grad(true);
  auto gradient = [&](GradScaler& scaler) {
    w.mutable_grad().reset();
    Tensor y = w.to(kFloat16) * x;
    scaler.scale(y * 1e-4).sum().backward();
    optim::SGD optimizer(std::vector<Tensor>{w}, 0.0);
    scaler.unscale_(optimizer);
    return w.grad().item<double>();
  };
  GradScaler off(GradScalerOptions().enabled(false)), on(GradScalerOptions(1024.0));
  EXPECT_NEAR(gradient(off), 1e-8, 1e-8);
  EXPECT_NEAR(gradient(on), 1e-8, 2e-11);
}

TEST(GradScaler, DisabledDoesNothing) {
  Tensor p = ones({1}, requires_grad());
  optim::SGD optimizer(std::vector<Tensor>{p}, 0.5);
  GradScaler scaler(GradScalerOptions().enabled(false));
  set_gradient(p, INFINITY);
  EXPECT_TRUE(scaler.scale(p).is_same(p));
  EXPECT_TRUE(scaler.step(optimizer));
  scaler.update();
  EXPECT_EQ(scaler.get_scale(), 1.0);
  EXPECT_TRUE(std::isinf(p.item<double>()));
}

TEST(GradScaler, Errors) {
  EXPECT_THROW(GradScaler(GradScalerOptions().growth_factor(1.0)), Error);
  EXPECT_THROW(GradScaler(GradScalerOptions().backoff_factor(1.0)), Error);
  Tensor p = ones({1}, requires_grad()), h = ones({1}, kFloat16).set_requires_grad(true);
  GradScaler scaler;
  optim::SGD none(std::vector<Tensor>{p}, 0.5), half(std::vector<Tensor>{h}, 0.5);
  EXPECT_THROW(scaler.unscale_(none), Error);
  h.mutable_grad() = ones({1}, kFloat16);
  EXPECT_THROW(scaler.unscale_(half), Error);
  EXPECT_THROW(GradScaler().update(), Error);
}

TEST(GradScaler, GoesOnWhereItWasSaved) {
  Tensor p = ones({1}, requires_grad());
  optim::SGD optimizer(std::vector<Tensor>{p}, 0.5);
  GradScaler a(GradScalerOptions(4.0).growth_interval(7)), b;
  set_gradient(p, 0);
  a.step(optimizer);
  a.update();
  serialize::OutputArchive out;
  a.save(out);
  serialize::InputArchive in(out.contents());
  b.load(in);
  EXPECT_EQ(b.get_scale(), 4.0);
  EXPECT_EQ(b.get_growth_tracker(), 1);
  EXPECT_EQ(b.get_growth_interval(), 7);
}

// A small network, step by step: autocast, with or without a scaler and checkpoints, eager or compiled.
struct Training {
  Tensor a, b, x, target;
  bool scaled = false, checkpointed = false;
  GradScaler scaler{GradScalerOptions(64.0)};
  std::unique_ptr<optim::AdamW> optimizer;

  Training() {
    manual_seed(11);
    a = (randn({16, 8}) * 0.3).set_requires_grad(true);
    b = (randn({4, 16}) * 0.3).set_requires_grad(true);
    x = randn({32, 8});
    target = randint(0, 4, {32}, kInt64);
    optimizer = std::make_unique<optim::AdamW>(std::vector<Tensor>{a, b}, optim::AdamWOptions(0.02));
  }
  Tensor hidden(const Tensor& in) { return dropout(gelu(linear(in, a)), 0.1, true); }
  Tensor step(const Tensor& in, bool autocast = true) {
    optimizer->zero_grad();
    Tensor loss;
    {
      amp::autocast guard(kBFloat16, autocast);
      Tensor h = checkpointed ? checkpoint([this](const Tensor& t) { return hidden(t); }, in) : hidden(in);
      Tensor logits = linear(h, b);
      EXPECT_EQ(logits.scalar_type(), autocast ? kBFloat16 : kFloat32);
      loss = cross_entropy_loss(logits, target);
    }
    if (scaled) {
      scaler.scale(loss).backward();
      scaler.step(*optimizer);
      scaler.update();
    } else {
      loss.backward();
      optimizer->step();
    }
    return loss.detach();
  }
};

// From the second step on a compiled one with a scaler is one graph, which chooses when it runs.
TEST(GradScaler, CompiledStepsAreTakenOrLeftOut) {
  Training eager, compiled;
  eager.scaled = compiled.scaled = true;
  auto seeded = [](int i, auto step) {
    manual_seed(static_cast<uint64_t>(100 + i));  // for dropout
    return step();
  };
  seeded(9, [&] { return eager.step(eager.x); });
  seeded(9, [&] { return compiled.step(compiled.x); });
  auto fast = compile([&](const Tensor& in) { return compiled.step(in); }, {.fullgraph = true});
  for (int i = 0; i < 5; ++i) {
    Tensor in = i == 2 ? eager.x * INFINITY : eager.x;
    Tensor before = compiled.a.detach().clone();
    seeded(i, [&] { return eager.step(in); });
    seeded(i, [&] { return fast(in); });
    EXPECT_EQ(compiled.scaler.get_scale(), eager.scaler.get_scale()) << i;
    EXPECT_EQ(compiled.scaler.get_growth_tracker(), eager.scaler.get_growth_tracker()) << i;
    EXPECT_EQ(before.equal(compiled.a), i == 2) << i;
    EXPECT_TRUE(allclose(compiled.a, eager.a, 2e-2, 2e-3)) << i;
  }
  EXPECT_EQ(compiled.scaler.get_scale(), 32.0);
}

std::vector<double> losses(bool compiled, bool scaled = false, bool checkpointed = false) {
  Training t;
  t.scaled = scaled;
  t.checkpointed = checkpointed;
  auto fast = compile([&](const Tensor& in) { return t.step(in); }, {.fullgraph = !scaled});
  std::vector<double> out;
  for (int i = 0; i < 6; ++i) out.push_back((compiled ? fast(t.x) : t.step(t.x)).item<double>());
  return out;
}

void expect_close(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(got[i], expected[i], tolerance * expected[i]) << i;
}

TEST(MixedPrecision, CompiledStepsAreEagers) {
  std::vector<double> eager = losses(false);
  EXPECT_LT(eager.back(), 0.9 * eager.front());
  expect_close(losses(true), eager,
               5e-3);  // a fused product may round to bfloat16 where eager does not, or not where it does
  expect_close(losses(true, true), losses(false, true), 5e-3);
  expect_close(losses(false, true), eager, 5e-3);
}

TEST(MixedPrecision, CheckpointsChangeNothing) {
  expect_close(losses(false, false, true), losses(false), 1e-6);
  expect_close(losses(true, false, true), losses(false), 5e-3);
}

// A layer before it gives bfloat16, its weights and states are float32.
TEST(MixedPrecision, CellsTakeWhatALayerGives) {
  Tensor x = randn({2, 4}), w = randn({4, 4}), state = zeros({2, 3});
  Tensor w4 = randn({12, 4}), u4 = randn({12, 3}), w3 = randn({9, 4}), u3 = randn({9, 3});
  auto lstm = [&](const Tensor& in, const Tensor& s) { return lstm_cell(in, {s, s}, w4, u4); };
  auto gru = [&](const Tensor& in, const Tensor& s) { return gru_cell(in, s, w3, u3); };
  auto f = [&](const Tensor& in) {
    AutocastMode guard(kBFloat16);
    Tensor given = linear(in, w);
    auto [h, c] = lstm(given, state);
    return std::vector<Tensor>{given, h, c, gru(given, state), gru(given, state.to(kBFloat16))};
  };
  auto compiled = compile(f);
  std::vector<Tensor> eager = f(x), results = compiled(x);
  EXPECT_EQ(eager[0].scalar_type(), kBFloat16);
  auto [h, c] = lstm(eager[0].to(kFloat32), state);
  Tensor g = gru(eager[0].to(kFloat32), state);
  std::vector<Tensor> expected = {eager[0], h, c, g, g};
  for (size_t i = 0; i < expected.size(); ++i)
    for (const Tensor& got : {eager[i], results[i]}) {
      EXPECT_TRUE(allclose(got.to(kFloat32), expected[i].to(kFloat32), 2e-2, 2e-2)) << i;
      EXPECT_TRUE(i == 0 || got.scalar_type() == kFloat32) << i;
    }
}

TEST(MixedPrecision, AutocastIsPartOfWhatAGraphIsFor) {
  Training t;
  bool on = true;
  auto step = compile([&](const Tensor& in) { return t.step(in, on); }, {.fullgraph = true});
  step(t.x);
  EXPECT_EQ(step.explain().graphs.size(), 1u);
  on = false;
  step(t.x);
  EXPECT_EQ(step.explain().graphs.size(), 2u);
  for (bool b : {true, false, true}) {
    on = b;
    step(t.x);
  }
  EXPECT_EQ(step.explain().graphs.size(), 2u);
}

TEST(MixedPrecision, AGuardAroundACompiledFunctionHoldsInside) {
  Tensor w = randn({3, 3}).set_requires_grad(true), x = randn({2, 3});
  auto f = compile([&](const Tensor& in) { return in.mm(w) + in.mm(w.t()); }, {.fullgraph = true});
  for (int i = 0; i < 3; ++i) {
    AutocastMode guard;
    EXPECT_EQ(f(x).scalar_type(), kBFloat16);
    EXPECT_EQ(f(x).scalar_type(), kBFloat16);
    f(x).sum().backward();
    EXPECT_EQ(w.grad().scalar_type(), kFloat32);
  }
  EXPECT_EQ(f(x).scalar_type(), kFloat32);
  Explanation e = f.explain();
  EXPECT_EQ(e.graphs.size(), 2u) << e.str();
}

TEST(MixedPrecision, ACheckpointWhoseFunctionIsCompiled) {
  Tensor w = randn({4, 4}).set_requires_grad(true), x = randn({3, 4}).set_requires_grad(true);
  auto f = [&](const Tensor& t) { return t.mm(w).tanh().exp(); };
  auto fast = compile(f);
  std::vector<Tensor> expected = autograd::grad({f(x).sum()}, {w, x});
  std::vector<Tensor> got = autograd::grad({checkpoint(fast, x).sum()}, {w, x});
  for (size_t i = 0; i < 2; ++i) EXPECT_TRUE(allclose(got[i], expected[i], 1e-4, 1e-5)) << i;
}

}  // namespace
}  // namespace brasa
