// What compiled functions keep of parameters between calls: packed weights, made anew as soon as the weights may have changed.
#include <brasa/autograd.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include <cstring>
#include <thread>

#include "values.h"

namespace brasa {
namespace {

struct NetImpl : nn::Module {
  nn::Linear first{48, 40}, second{40, 32};
  NetImpl() {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) { return second->forward(first->forward(x).relu()); }
};

Tensor input(int64_t rows = 64) { return numbers({rows, 48}) * 0.01; }

auto compiled(std::shared_ptr<NetImpl>& net) {
  return compile([&](const Tensor& x) {
    NoGradGuard guard;
    return net->forward(x);
  });
}
bool prepares(const std::string& kernels) { return kernels.find("made once") != std::string::npos; }

TEST(Prepared, FollowsEveryWayToWrite) {
  auto net = std::make_shared<NetImpl>();
  auto f = compiled(net);
  Tensor x = input(), w = net->first->weight;
  auto same = [&] {
    NoGradGuard guard;
    for (int i = 0; i < 2; ++i) expect_close(f(x), net->forward(x));
  };
  same();
  EXPECT_TRUE(prepares(f.explain().graphs[0].kernels));
  NoGradGuard guard;
  w.mul_(2);
  same();
  w.data().add_(0.5);  // does not count for autograd
  same();
  w.detach()[1].fill_(3);
  same();
  net->second->weight.t().copy_(numbers({40, 32}) * 0.1);
  same();
  w.set_data(numbers({40, 48}) * 0.02);
  same();
  net->to(kFloat64);
  net->to(kFloat32);
  same();
  // What has an address may be written at any time.
  float* at = w.data_ptr<float>();
  for (int i = 0; i < 3; ++i) {
    at[7] += 1;
    same();
  }
  std::vector<float> own(40 * 48, 0.125f);
  w.set_data(from_blob(own.data(), {40, 48}));
  for (int i = 0; i < 3; ++i) {
    own[5] += 1;
    same();
  }
}

TEST(Prepared, PartsOfOneMemory) {
  auto net = std::make_shared<NetImpl>();
  auto f = compiled(net);
  NoGradGuard guard;
  Tensor x = input(), flat = numbers({2, 40, 48}) * 0.01;
  for (int i = 0; i < 4; ++i) {
    net->first->weight.set_data(flat[i % 2]);
    for (int k = 0; k < 2; ++k) expect_close(f(x), net->forward(x));
  }
}

TEST(Prepared, OtherModulesAndTheirMemory) {
  auto net = std::make_shared<NetImpl>();
  auto f = compiled(net);
  Tensor x = input();
  NoGradGuard guard;
  for (int i = 0; i < 6; ++i) {
    // Freed memory is given to the next one.
    net = nullptr;
    net = std::make_shared<NetImpl>();
    for (int k = 0; k < 2; ++k) expect_close(f(x), net->forward(x));
  }
  auto other = std::make_shared<NetImpl>();
  for (int i = 0; i < 4; ++i) {
    std::swap(net, other);
    expect_close(f(x), net->forward(x));
  }
}

TEST(Prepared, SizesMayVary) {
  auto net = std::make_shared<NetImpl>();
  auto f = compiled(net);
  NoGradGuard guard;
  for (int64_t rows : {64, 100, 64, 3, 1, 0, 100, 130}) {
    Tensor x = input(rows);
    expect_close(f(x), net->forward(x));
  }
}

TEST(Prepared, Training) {
  auto net = std::make_shared<NetImpl>();
  auto infer = compiled(net);
  optim::SGD sgd(net->parameters(), 0.1);
  Tensor x = input();
  // A step that is recorded as a whole writes the parameters.
  auto step = compile([&](const Tensor& t) {
    sgd.zero_grad();
    Tensor loss = net->forward(t).square().mean();
    loss.backward();
    sgd.step();
    return loss.detach();
  });
  for (int i = 0; i < 4; ++i) {
    step(x);
    NoGradGuard guard;
    for (int k = 0; k < 2; ++k) expect_close(infer(x), net->forward(x));
  }
  for (const auto& g : step.explain().graphs) EXPECT_FALSE(prepares(g.kernels));
}

TEST(Prepared, IsCountedAndGoesWithTheFunction) {
  auto net = std::make_shared<NetImpl>();
  Tensor x = input(), y;
  auto held = [] { return memory_stats().allocated; };
  int64_t before = held();
  {
    auto f = compiled(net);
    for (int i = 0; i < 3; ++i) f(x);
    int64_t kept = held() - before;
    EXPECT_GE(kept, 40 * 48 * 4);
    for (int i = 0; i < 3; ++i) f(x);
    EXPECT_EQ(held() - before, kept);
  }
  reset();
  EXPECT_EQ(held(), before);
}

TEST(Prepared, SeveralThreads) {
  auto net = std::make_shared<NetImpl>();
  auto f = compiled(net);
  Tensor x = input(), expected;
  {
    NoGradGuard guard;
    expected = net->forward(x);
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) expect_close(f(x), expected);
    });
  for (std::thread& t : threads) t.join();
}

// The steps of a loop share what the first one makes of the weights.
TEST(Prepared, Loops) {
  nn::LSTM lstm(nn::LSTMOptions(24, 32).batch_first(true));
  auto f = compile([&](const Tensor& x) {
    NoGradGuard guard;
    return std::get<0>(lstm->forward(x));
  });
  NoGradGuard guard;
  for (int64_t steps : {70, 70, 90})
    for (int i = 0; i < 2; ++i) {
      Tensor x = numbers({50, steps, 24}) * 0.0001;
      expect_close(f(x), std::get<0>(lstm->forward(x)));
      lstm->parameters()[1].mul_(1.25);
    }
}

}  // namespace
}  // namespace brasa
