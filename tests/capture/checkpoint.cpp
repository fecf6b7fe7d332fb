// Checkpointed functions and memory budgets in compiled functions: the same numbers, less memory.
#include <brasa/checkpoint.h>
#include <brasa/nn.h>
#include <brasa/optim.h>
#include <brasa/saved_tensors.h>

#include <algorithm>
#include <random>

#include "values.h"

namespace brasa {
namespace {

constexpr int kLayers = 6;
constexpr int64_t kRows = 64, kWidth = 32;

enum class Way { Plain, Checkpointed };

struct Net {
  std::vector<Tensor> weights;
  Net() {
    manual_seed(11);
    for (int i = 0; i < 2 * kLayers; ++i) weights.push_back((randn({kWidth, kWidth}) / 6).requires_grad_());
  }
  Tensor operator()(Tensor x, Way way) const {
    for (size_t i = 0; i < weights.size(); i += 2) {
      auto block = [this, i](const Tensor& t) {
        Tensor h = t.mm(weights[i]);
        Tensor wide = cat({gelu(h), h.tanh(), h.sigmoid()}, 1).narrow(1, kWidth / 2, kWidth);
        return t + wide.softmax(1).mm(weights[i + 1]).sin();
      };
      x = way == Way::Checkpointed ? checkpoint(block, x) : block(x);
    }
    return x.square().mean();
  }
};

void expect_close(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(allclose(a[i], b[i], 1e-4, 1e-6)) << i << ": " << (a[i] - b[i]).abs().max();
}

// Gradients of two calls with a backward pass inside, and of two with one outside; sizes differ from call to call.
std::vector<Tensor> gradients(const Net& net, const std::function<Tensor(const Tensor&)>& f) {
  std::vector<Tensor> out;
  for (int64_t rows : {kRows, kRows, kRows + 5}) {
    manual_seed(rows);
    Tensor x = randn({rows, kWidth}).requires_grad_();
    Tensor loss = f(x);
    if (loss.requires_grad()) loss.backward();
    out.push_back(loss.detach());
    out.push_back(x.grad());
    for (const Tensor& w : net.weights) {
      out.push_back(w.grad().clone());
      w.mutable_grad().reset();
    }
  }
  return out;
}

std::vector<Tensor> expected() {
  Net net;
  return gradients(net, [&](const Tensor& x) { return net(x, Way::Plain); });
}

class Checkpoints : public ::testing::TestWithParam<const char*> {};

TEST_P(Checkpoints, AWholeStepComputesTheirValuesAgain) {
  Net net;
  int64_t arena[2];
  for (Way way : {Way::Plain, Way::Checkpointed}) {
    auto step = compile(
        [&](const Tensor& x) {
          Tensor loss = net(x, way);
          loss.backward();
          return loss.detach();
        },
        {.backend = GetParam()});
    expect_close(gradients(net, step), expected());
    Explanation e = step.explain();
    EXPECT_TRUE(e.breaks.empty()) << e.str();
    arena[static_cast<int>(way)] = e.graphs.at(0).arena_bytes;
  }
  if (GetParam() == std::string("inductor")) {
    EXPECT_LT(arena[1], 0.55 * static_cast<double>(arena[0]));
  }
}

TEST_P(Checkpoints, ABackwardPassOutsideComputesTheirValuesAgain) {
  Net net;
  int64_t kept[2];
  for (Way way : {Way::Plain, Way::Checkpointed}) {
    auto f = compile([&](const Tensor& x) { return net(x, way); }, {.backend = GetParam()});
    expect_close(gradients(net, f), expected());
    kept[static_cast<int>(way)] = f.explain().graphs.at(0).kept_bytes;
  }
  if (GetParam() == std::string("eager")) return;  // its operators' own nodes keep all
  // What each block gives.
  EXPECT_EQ(kept[1], kLayers * kRows * kWidth * 4);
  EXPECT_GT(kept[0], 2 * kept[1]);
}

TEST_P(Checkpoints, BudgetsBoundWhatWaits) {
  Net net;
  std::vector<int64_t> kept, arena;
  for (const char* budget : {"1", "0.5", "0.2", "0"}) {
    std::map<std::string, std::string> options;
    if (GetParam() == std::string("inductor")) options["memory_budget"] = budget;
    auto f = compile([&](const Tensor& x) { return net(x, Way::Plain); }, {.backend = GetParam(), .options = options});
    expect_close(gradients(net, f), expected());
    kept.push_back(f.explain().graphs.at(0).kept_bytes);
    auto step = compile(
        [&](const Tensor& x) {
          Tensor loss = net(x, Way::Plain);
          loss.backward();
          return loss.detach();
        },
        {.backend = GetParam(), .options = options});
    expect_close(gradients(net, step), expected());
    arena.push_back(step.explain().graphs.at(0).arena_bytes);
  }
  if (GetParam() != std::string("inductor")) return;
  EXPECT_LE(kept[1], kept[0] / 2);
  EXPECT_LE(kept[2], kept[0] / 5);
  EXPECT_EQ(kept[3], 0);
  EXPECT_LT(arena[1], arena[0]);
  EXPECT_LT(arena[2], arena[0]) << arena[1];
}

TEST_P(Checkpoints, RandomNumbersMaximaWritesAndNests) {
  Tensor w = (randn({8, 8}) / 3).requires_grad_();
  auto run = [&](bool checkpointed, const Tensor& x) {
    auto drop = [&](const Tensor& t) { return dropout(t.mm(w), 0.3, true).relu(); };
    auto inner = [&](const Tensor& t) { return checkpointed ? checkpoint(drop, t) : drop(t); };
    auto outer = [&](const Tensor& t) {
      Tensor y = inner(t.exp()).clone();
      y.narrow(1, 2, 3).mul_(t.narrow(1, 0, 3).tanh());
      return y * y.amax({1}, true) + inner(y.sin());
    };
    return (checkpointed ? checkpoint(outer, x * 2) : outer(x * 2)).sum();
  };
  for (bool inside : {true, false}) {
    std::vector<Tensor> results[2];
    for (bool compiled : {false, true}) {
      auto body = [&, inside](const Tensor& x) {
        Tensor loss = run(compiled, x);
        if (inside) loss.backward();
        return inside ? loss.detach() : loss;
      };
      auto f = compile(body, {.backend = GetParam()});
      for (int64_t rows : {4, 4, 7, 1}) {
        manual_seed(rows);
        Tensor x = (randn({rows, 8}) / 4).requires_grad_();
        Tensor loss = compiled ? f(x) : body(x);
        if (!inside) loss.backward();
        results[compiled].insert(results[compiled].end(), {loss.detach(), x.grad(), w.grad().clone()});
        w.mutable_grad().reset();
      }
    }
    expect_close(results[1], results[0]);
  }
}

TEST_P(Checkpoints, SecondDerivatives) {
  Tensor w = (arange(9, kFloat32).reshape({3, 3}) / 10).requires_grad_();
  auto body = [&](const Tensor& x, bool checkpointed) {
    auto block = [&](const Tensor& t) { return t.mm(w).tanh().exp(); };
    Tensor y = (checkpointed ? checkpoint(block, x) : block(x)).sum();
    Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
    return (g * g).sum();
  };
  auto f = compile([&](const Tensor& x) { return body(x, true); }, {.backend = GetParam()});
  std::vector<Tensor> results[2];
  for (bool compiled : {false, true})
    for (int64_t rows : {2, 2, 5}) {
      Tensor x = (arange(3 * rows, kFloat32).reshape({rows, 3}) / 20).requires_grad_();
      (compiled ? f(x) : body(x, false)).backward();
      results[compiled].insert(results[compiled].end(), {x.grad(), w.grad().clone()});
      w.mutable_grad().reset();
    }
  expect_close(results[1], results[0]);
}

// In a function's second run a product and a sum may be rounded as one: what is compared with its own maximum must not differ from it.
TEST_P(Checkpoints, WhatIsComparedIsComputedOnce) {
  constexpr int64_t kCount = 300, kColumns = 64;
  manual_seed(3);
  Tensor w = randn({kCount, kColumns}), u = randn({kColumns, kColumns}) / 8;
  for (bool masked : {false, true}) {
    auto block = [&](const Tensor& t, const Tensor& b) {
      Tensor product = t.mm(u) * w, sum = product + b, top = sum.detach().amax({1});
      Tensor mask = sum.detach() >= top.unsqueeze(1);
      Tensor aside = masked ? product.detach().mm(u) : product.detach().softmax(0);
      return std::tuple(masked ? where(mask, sum, 0.0).sum(1) : sum.amax({1}), aside, top);
    };
    auto step = compile(
        [&](const Tensor& x, const Tensor& b) {
          auto [largest, aside, top] = checkpoint(block, x, b);
          Tensor y = largest.unsqueeze(1) + aside.sum(1, true) + top.unsqueeze(1);
          for (int i = 0; i < 3; ++i) y = y.expand({kCount, kColumns}).mm(u).sin().sum(1, true);
          (y.sum() + largest.sum()).backward();
        },
        {.backend = GetParam()});
    Tensor x = randn({kCount, kColumns}).requires_grad_(), b = randn({kCount, kColumns}).requires_grad_();
    step(x, b);
    EXPECT_TRUE(b.grad().isfinite().all().item<bool>());
    EXPECT_EQ((b.grad() != 0).sum().item<int64_t>(), kCount);  // one in each row
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Checkpoints, ::testing::Values("inductor", "aot_eager", "eager", "interpreter"));

// A compiled function that a checkpointed one calls keeps its inputs and computes the rest again.
TEST(CheckpointedCompiled, KeepsItsInputs) {
  Net net;
  auto block = [&](const Tensor& x) { return net(x, Way::Plain); };
  int64_t kept[2];
  for (bool checkpointed : {false, true}) {
    auto f = compile(block);
    for (int i = 0; i < 3; ++i) {
      Tensor x = numbers({kRows, kWidth}).requires_grad_();
      (checkpointed ? checkpoint([&](const Tensor& t) { return f(t).exp(); }, x) : f(x).exp()).backward();
      Tensor same = numbers({kRows, kWidth}).requires_grad_();
      EXPECT_TRUE(allclose(x.grad(), autograd::grad({block(same).exp()}, {same})[0], 1e-4, 1e-6)) << i;
    }
    kept[checkpointed] = f.explain().graphs.at(0).kept_bytes;
  }
  EXPECT_GT(kept[0], 0);
  EXPECT_EQ(kept[1], 0);
}

// What each layer adds to a stream of values follows from the one before by cheap work, so that all of the stream would lie there at once.
// An optimizer's count of its steps is cheap as well, and nothing waits for the backward pass to know it.
TEST(MemoryBudget, TakesLessThanNone) {
  constexpr int64_t kFeatures = 32;
  std::vector<int64_t> arenas;
  for (const char* budget : {"1", "0.7", "0.4", "0"}) {
    manual_seed(3);
    std::vector<nn::Linear> layers;
    std::vector<Tensor> parameters;
    for (int i = 0; i < 12; ++i) {
      layers.emplace_back(kFeatures, kFeatures);
      for (Tensor& p : layers.back()->parameters()) parameters.push_back(p);
    }
    optim::Adam optimizer(parameters, 1e-3);
    auto step = compile(
        [&](Tensor x) {
          optimizer.zero_grad();
          for (nn::Linear& l : layers) x = x + gelu(l->forward(layer_norm(x, {kFeatures})));
          x.square().mean().backward();
          optimizer.step();
        },
        {.options = {{"memory_budget", budget}}});
    step(numbers({512, kFeatures}));
    arenas.push_back(step.explain().graphs.at(0).arena_bytes);
  }
  // What the plan makes of a graph is known only about before: panels of weights, what stands where. So a smaller budget may take more, and that of
  // 0, which computes all of the stream again, a little more than none does.
  for (size_t i = 1; i + 1 < arenas.size(); ++i) EXPECT_LE(arenas[i], arenas[0] * 9 / 10) << i;
  EXPECT_LE(arenas.back(), arenas[0] * 9 / 8);
  EXPECT_LT(*std::min_element(arenas.begin(), arenas.end()), arenas[0] * 4 / 5);
}

// Cheap work alone: its result follows from what waits anyway.
TEST(CheckpointedActivations, KeepNoMoreThanWithout) {
  Net net;
  int64_t kept[2];
  for (Way way : {Way::Plain, Way::Checkpointed}) {
    auto f = compile([&](Tensor x) {
      auto activation = [](const Tensor& t) { return gelu(t) * t.tanh(); };
      for (const Tensor& w : net.weights) {
        Tensor h = x.mm(w);
        x = way == Way::Checkpointed ? checkpoint(activation, h) : activation(h);
      }
      return x.square().mean();
    });
    (void)f(numbers({kRows, kWidth}).requires_grad_());
    kept[static_cast<int>(way)] = f.explain().graphs.at(0).kept_bytes;
  }
  EXPECT_EQ(kept[1], kept[0]);
}

TEST(MemoryBudget, IsAPart) {
  for (const char* wrong : {"2", "-0.1", "half"})
    EXPECT_THROW(compile([](const Tensor& x) { return x; }, {.options = {{"memory_budget", wrong}}}), Error) << wrong;
}

TEST(CompiledSavedTensors, GoThroughHooks) {
  Net net;
  auto f = compile([&](const Tensor& x) { return net(x, Way::Plain); });
  int packed = 0, unpacked = 0;
  auto hooked = [&](const Tensor& x) {
    autograd::SavedTensorsHooks hooks(
        [&](const Tensor& t) {
          ++packed;
          return t.clone();
        },
        [&](const std::any& kept) {
          ++unpacked;
          return std::any_cast<Tensor>(kept);
        });
    return f(x);
  };
  expect_close(gradients(net, hooked), expected());
  EXPECT_GT(packed, 3);
  EXPECT_GT(unpacked, 3);
  EXPECT_LE(unpacked, packed);  // inputs are kept for second derivatives, too
}

TEST(CompiledSavedTensors, HooksInTheBodyEndTheGraph) {
  Net net;
  int packed = 0;
  auto f = compile([&](const Tensor& x) {
    Tensor y = x * 2;
    autograd::SavedTensorsHooks hooks(
        [&](const Tensor& t) {
          ++packed;
          return t;
        },
        [](const std::any& kept) { return std::any_cast<Tensor>(kept); });
    return net(y / 2, Way::Plain);
  });
  expect_close(gradients(net, f), expected());
  EXPECT_GT(packed, 3);
  Explanation e = f.explain();
  ASSERT_EQ(e.breaks.size(), 1u) << e.str();
  EXPECT_EQ(e.breaks[0].reason, "hooks for saved tensors");
}

}  // namespace
}  // namespace brasa
