#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/checkpoint.h>
#include <gtest/gtest.h>

namespace brasa {
namespace {

struct Net {
  Tensor a, b;
  int runs = 0;
  explicit Net(uint64_t seed = 5) {
    manual_seed(seed);
    a = randn({4, 4}).set_requires_grad(true);
    b = randn({4, 4}).set_requires_grad(true);
  }
  Tensor operator()(const Tensor& x) {
    ++runs;
    return dropout(x.mm(a).tanh(), 0.5, true).mm(b).sigmoid();
  }
};

std::vector<Tensor> gradients_of(Net& net, const Tensor& x, bool checkpointed) {
  manual_seed(7);
  Tensor h = x * 2;
  Tensor y = checkpointed ? checkpoint([&net](const Tensor& t) { return net(t); }, h) : net(h);
  Tensor after = rand({3});  // the stream goes on as it would
  y = y * y;
  std::vector<Tensor> out = autograd::grad({y.sum()}, {net.a, net.b, x});
  out.push_back(y.detach());
  out.push_back(after);
  out.push_back(rand({3}));
  return out;
}

TEST(Checkpoint, GivesTheSameGradientsWithTheSameRandomNumbers) {
  Net net;
  Tensor x = randn({3, 4}).set_requires_grad(true);
  std::vector<Tensor> expected = gradients_of(net, x, false);
  EXPECT_EQ(net.runs, 1);
  std::vector<Tensor> got = gradients_of(net, x, true);
  EXPECT_EQ(net.runs, 3);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(got[i].equal(expected[i])) << i;
}

TEST(Checkpoint, AccumulatesIntoLeaves) {
  Net net;
  Tensor x = randn({3, 4});
  net(x).sum().backward({}, true);
  EXPECT_TRUE(net.a.grad().defined());
  net.a.mutable_grad().reset();
  checkpoint([&](const Tensor& t) { return net(t); }, x).sum().backward();
  EXPECT_TRUE(net.a.grad().defined());
}

TEST(Checkpoint, KeepsNoValuesOfTheFunction) {
  std::weak_ptr<int> alive;
  Tensor w = randn({8}).set_requires_grad(true), y;
  // The storage of a value between two operators lives as long as somebody keeps it.
  auto f = [&](const Tensor& t) {
    auto token = std::make_shared<int>(0);
    Tensor h = t.exp();
    Tensor seen = from_blob(h.data_ptr(), {1}, [token, h](void*) {}, h.options());
    alive = token;
    return (h * seen).sin();
  };
  y = f(w);
  EXPECT_FALSE(alive.expired());
  y = checkpoint(f, w);
  EXPECT_TRUE(alive.expired());
  y.sum().backward();
  EXPECT_TRUE(alive.expired());
  Tensor h = w.detach().exp(), seen = h.slice(0, 0, 1);
  EXPECT_TRUE(allclose(w.grad(), (h * seen).cos() * seen * h));
}

TEST(Checkpoint, SecondDerivatives) {
  Tensor x = tensor({0.3, 0.7}, kFloat64).set_requires_grad(true);
  auto f = [](const Tensor& t) { return (t.sin() * t.exp()).sum(); };
  auto second = [&](bool checkpointed) {
    Tensor y = checkpointed ? checkpoint(f, x) : f(x);
    Tensor g = autograd::grad({y}, {x}, {}, true, true)[0];
    return autograd::grad({g.sum()}, {x})[0];
  };
  EXPECT_TRUE(allclose(second(true), second(false)));
}

TEST(Checkpoint, NestsAndChains) {
  Net net(6);
  Tensor x = randn({3, 4}).set_requires_grad(true);
  auto inner = [&](const Tensor& t) { return t.mm(net.a).tanh(); };
  auto outer = [&](const Tensor& t) { return checkpoint(inner, t.exp()).mm(net.b).sin(); };
  std::vector<Tensor> expected = autograd::grad({inner(x.exp()).mm(net.b).sin().sum()}, {net.a, net.b, x});
  std::vector<Tensor> got = autograd::grad({checkpoint(outer, x).sum()}, {net.a, net.b, x});
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(allclose(got[i], expected[i])) << i;

  std::vector<std::function<Tensor(Tensor)>> layers(5, [&](Tensor t) { return t.mm(net.a).tanh(); });
  Tensor plain = x;
  for (auto& layer : layers) plain = layer(plain);
  Tensor by_segments = checkpoint_sequential(layers, 2, x);
  EXPECT_TRUE(by_segments.equal(plain));
  expected = autograd::grad({plain.sum()}, {net.a, x});
  got = autograd::grad({by_segments.sum()}, {net.a, x});
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(allclose(got[i], expected[i])) << i;
  EXPECT_THROW(checkpoint_sequential(layers, 0, x), Error);
}

TEST(Checkpoint, RunsAgainUnderTheSameAutocast) {
  Net net;
  Tensor x = randn({3, 4});
  auto f = [&](const Tensor& t) { return t.mm(net.a).tanh().mm(net.b).sin(); };
  auto gradient = [&](bool checkpointed) {
    AutocastMode guard;
    Tensor y = checkpointed ? checkpoint(f, x) : f(x);
    return std::pair(y, y.sum());
  };
  auto [y0, s0] = gradient(false);
  auto [y1, s1] = gradient(true);
  EXPECT_EQ(y1.scalar_type(), kBFloat16);
  EXPECT_TRUE(autograd::grad({s1}, {net.a})[0].equal(autograd::grad({s0}, {net.a})[0]));
}

TEST(Checkpoint, InPlaceOperators) {
  Net net;
  Tensor x = randn({3, 4}).set_requires_grad(true);
  auto f = [&](const Tensor& t) {
    Tensor h = t.mm(net.a);
    h.relu_();
    h.mul_(t);
    return h.exp();
  };
  Tensor expected = autograd::grad({f(x).sum()}, {x})[0];
  EXPECT_TRUE(allclose(autograd::grad({checkpoint(f, x).sum()}, {x})[0], expected));
}

TEST(Checkpoint, AFunctionThatDoesSomethingElseTheSecondTimeIsAnError) {
  Tensor x = randn({3}).set_requires_grad(true);
  int runs = 0;
  Tensor y = checkpoint([&](const Tensor& t) { return ++runs == 1 ? t.exp().sin().exp() : t.exp(); }, x);
  try {
    y.sum().backward();
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("same both times"), std::string::npos) << e.what();
  }
}

TEST(Checkpoint, WithoutGradientsItIsTheFunction) {
  Net net;
  NoGradGuard no_grad;
  Tensor y = checkpoint([&](const Tensor& t) { return net(t); }, randn({3, 4}));
  EXPECT_EQ(net.runs, 1);
  EXPECT_FALSE(y.requires_grad());
}

}  // namespace
}  // namespace brasa
