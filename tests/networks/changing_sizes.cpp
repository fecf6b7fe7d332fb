// Networks that are drawn are trained and evaluated with other sizes in each call, eagerly and compiled: losses are eager's, and once sizes are
// symbols nothing is compiled any more. BRASA_FUZZ_SEED, BRASA_FUZZ_COUNT and BRASA_FUZZ_CALLS give other seeds, how many, and how many
// calls each gets, BRASA_FUZZ_MOST what may be compiled in the last third of them (where sizes of 1 come late); with BRASA_FUZZ_PRINT each call's line says what it compiled and how long it took (BRASA_LOGS=recompiles says why).
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/optim.h>
#include <brasa/stats.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <iostream>

#include "networks.h"

namespace brasa::test {
namespace {

int given(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text ? std::atoi(text) : otherwise;
}

// How a user trains it.
enum class Mode { Eager, Forward, Step };
constexpr Mode kModes[] = {Mode::Eager, Mode::Forward, Mode::Step};
const char* name(Mode m) { return m == Mode::Eager ? "eager" : m == Mode::Step ? "step" : "forward"; }

struct Call {
  Extent extent;
  bool trains;
};

// All that a seed says.
struct Drawn {
  Network network;
  std::unique_ptr<optim::Optimizer> optimizer;
  double most_norm = 0;  // of gradients; 0: they are not clipped
  std::vector<Call> calls;
};

std::unique_ptr<optim::Optimizer> draw_optimizer(Random& random, Network& net) {
  std::vector<Tensor> p = net.parts->parameters();
  switch (random.in(0, 5)) {
    case 0: net.text += ", adam"; return std::make_unique<optim::Adam>(p, optim::AdamOptions(1e-3));
    case 1: net.text += ", adamw"; return std::make_unique<optim::AdamW>(p, optim::AdamWOptions(1e-3));
    case 2: net.text += ", rmsprop"; return std::make_unique<optim::RMSprop>(p, optim::RMSpropOptions(1e-4));
    case 3: net.text += ", adagrad"; return std::make_unique<optim::Adagrad>(p, optim::AdagradOptions(1e-3));
    case 4: net.text += ", sgd"; return std::make_unique<optim::SGD>(p, optim::SGDOptions(1e-2));
    default:
      net.text += ", momentum";
      return std::make_unique<optim::SGD>(p, optim::SGDOptions(1e-2).momentum(0.9).weight_decay(1e-4));
  }
}

// What changes from call to call: batches, lengths, both, or lengths and an epoch's last batch.
std::vector<Call> draw_calls(Random& random, Network& net, int count) {
  int64_t kind = random.in(0, 3);
  bool evaluates = random.one_of(2);
  constexpr const char* kKinds[] = {", batches", ", lengths", ", batches and lengths", ", lengths and last batches"};
  net.text += kKinds[kind];
  if (net.most.length == 0) kind = 0;
  if (evaluates) net.text += ", evaluated";
  auto between = [&](int64_t Extent::* size) { return random.in(net.least.*size, net.most.*size); };
  Extent e{between(&Extent::batch), between(&Extent::length), between(&Extent::width)};
  std::vector<Call> out;
  for (int i = 0; i < count; ++i) {
    if (kind != 1 && kind != 3) e.batch = between(&Extent::batch);
    if (kind != 0) {
      e.length = between(&Extent::length);
      e.width = between(&Extent::width);
    }
    Call call{e, !(evaluates && i % 4 == 3)};
    if (kind == 3 && i % 6 == 5) call.extent.batch = random.in(net.least.batch, e.batch);
    out.push_back(call);
  }
  return out;
}

std::vector<Family> families() {
  std::vector<Family> out = convolutional();
  for (const Family& f : sequential()) out.push_back(f);
  return out;
}

Drawn drawn(uint32_t seed, int calls) {
  Random random(seed);
  manual_seed(seed);
  Drawn out;
  std::vector<Family> all = families();
  const Family& family = all[seed % all.size()];
  out.network.text = family.name + std::string(":");
  family.draw(random, out.network);
  out.optimizer = draw_optimizer(random, out.network);
  if (random.one_of(3)) {
    out.most_norm = 1;
    out.network.text += ", clipped";
  }
  out.calls = draw_calls(random, out.network, calls);
  return out;
}

struct Seen {
  double loss, milliseconds;
  Stats before, after;
  int64_t compilations() const { return after.compilations - before.compilations; }
};

using Function = std::function<Tensor(const std::vector<Tensor>&, const Tensor&)>;

std::vector<Seen> run(uint32_t seed, Mode mode, int calls) {
  Drawn d = drawn(seed, calls);
  Network& net = d.network;
  auto update = [&] {
    if (d.most_norm > 0) nn::utils::clip_grad_norm_tensor_(net.parts->parameters(), d.most_norm);
    d.optimizer->step();
  };
  auto loss = [&](const std::vector<Tensor>& in, const Tensor& target) { return net.loss(net.forward(in), target); };
  auto evaluated = [&](const std::vector<Tensor>& in, const Tensor& target) {
    NoGradGuard none;
    return loss(in, target);
  };
  auto step = [&](const std::vector<Tensor>& in, const Tensor& target) {
    d.optimizer->zero_grad();
    Tensor l = loss(in, target);
    l.backward();
    update();
    return l.detach();
  };
  Function trains = step, evaluates = evaluated;
  if (mode == Mode::Step) {
    trains = compile(step);
    evaluates = compile(evaluated);
  } else if (mode == Mode::Forward) {
    auto forward = compile([&](const std::vector<Tensor>& in) { return net.forward(in); });
    trains = [&, forward](const std::vector<Tensor>& in, const Tensor& target) {
      d.optimizer->zero_grad();
      Tensor l = net.loss(forward(in), target);
      l.backward();
      update();
      return l.detach();
    };
    evaluates = [&, forward](const std::vector<Tensor>& in, const Tensor& target) {
      NoGradGuard none;
      return net.loss(forward(in), target);
    };
  }
  bool prints = given("BRASA_FUZZ_PRINT", 0) != 0;
  if (prints) std::cerr << "== seed " << seed << " " << name(mode) << ": " << net.text << "\n";
  std::vector<Seen> out;
  for (size_t i = 0; i < d.calls.size(); ++i) {
    const Call& call = d.calls[i];
    manual_seed(1000 * seed + i);
    Batch batch = net.batch(call.extent);
    call.trains ? net.parts->train() : net.parts->eval();
    Seen s{};
    s.before = stats();
    auto begin = std::chrono::steady_clock::now();
    s.loss = (call.trains ? trains : evaluates)(batch.inputs, batch.target).item<double>();
    s.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    s.after = stats();
    if (prints)
      std::cerr << "-- " << i << (call.trains ? " train " : " eval ") << call.extent.batch << "," << call.extent.length
                << "," << call.extent.width << ": loss " << s.loss << ", " << s.compilations() << " compiled, "
                << s.after.kernels_generated - s.before.kernels_generated << " generated, " << s.milliseconds
                << " ms\n";
    out.push_back(s);
  }
  return out;
}

class ChangingSizes : public testing::TestWithParam<uint32_t> {};

TEST_P(ChangingSizes, AreEager) {
  int calls = given("BRASA_FUZZ_CALLS", 24);
  std::vector<std::vector<Seen>> seen;
  for (Mode mode : kModes) {
    seen.push_back(run(GetParam(), mode, calls));
    int64_t all = 0, last = 0;
    double late = 0;
    for (size_t i = 0; i < seen.back().size(); ++i) {
      const Seen& s = seen.back()[i];
      all += s.compilations();
      bool is_last = i >= seen.back().size() * 2 / 3;
      if (is_last) last += s.compilations();
      if (is_last && s.compilations()) late += s.milliseconds;
    }
    // Sizes of 1 and a first smaller last batch may still come, and a class of some operator's; not one after the other.
    EXPECT_LE(last, given("BRASA_FUZZ_MOST", 3)) << "seed " << GetParam() << " " << name(mode);
    std::cout << "seed " << GetParam() << " " << name(mode) << ": " << all << " compiled, " << last
              << " of them in the last third, whose calls took " << late << " ms\n";
  }
  for (size_t m = 1; m < seen.size(); ++m)
    for (size_t i = 0; i < seen[m].size(); ++i) {
      double want = seen[0][i].loss, got = seen[m][i].loss;
      EXPECT_LE(std::abs(got - want), 1e-3 * std::abs(want) + 1e-3)
          << "seed " << GetParam() << " " << name(kModes[m]) << ", call " << i << ": " << got << ", eager " << want;
    }
}

uint32_t first_seed() { return static_cast<uint32_t>(given("BRASA_FUZZ_SEED", 1)); }
INSTANTIATE_TEST_SUITE_P(Seeds, ChangingSizes,
                         testing::Range(first_seed(),
                                        first_seed() + static_cast<uint32_t>(given("BRASA_FUZZ_COUNT", 8))));

}  // namespace
}  // namespace brasa::test
