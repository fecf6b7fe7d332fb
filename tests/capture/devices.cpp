#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <gtest/gtest.h>

#include "runtime/emu/inject.h"

// Compiled functions of tensors that live on the emulated GPU.
namespace brasa {
namespace {

TensorOptions there(const char* name = "emu") { return TensorOptions(Device(name)); }

class Captured : public testing::TestWithParam<const char*> {};

TEST_P(Captured, RunsWhereItsOperandsLive) {
  auto f =
      compile([](const Tensor& x, const Tensor& y) { return (x * y + 1).sum(0) / x.max(); }, {.backend = GetParam()});
  Tensor x = arange(6, kFloat32).reshape({2, 3}), y = full({2, 3}, 3.0);
  Tensor here = f(x, y);
  for (const char* name : {"emu:0", "emu:1"}) {
    Tensor got = f(x.to(Device(name)), y.to(Device(name)));
    EXPECT_EQ(got.device().str(), name);
    EXPECT_TRUE(got.cpu().allclose(here));
  }
  EXPECT_TRUE(f(x, y).equal(here));
}

TEST_P(Captured, NumbersOfTheHostComeAlong) {
  auto f = compile([](const Tensor& x, const Tensor& rate, double more) { return x - rate * x * more; },
                   {.backend = GetParam()});
  Tensor x = ones({4}, there());
  for (double r : {0.5, 0.25, 0.125}) EXPECT_TRUE(f(x, tensor(r), 2 * r).cpu().allclose(full({4}, 1 - 2 * r * r))) << r;
}

TEST_P(Captured, WritesIntoItsOperands) {
  auto f = compile(
      [](const Tensor& x) {
        x.add_(1);
        x.select(0, 0).mul_(10);
        return x.sum();
      },
      {.backend = GetParam()});
  Tensor x = zeros({2, 2}, there());
  EXPECT_EQ(f(x).item<float>(), 22.0f);
  EXPECT_EQ(f(x).item<float>(), 224.0f);
}

// Of reduced floats, whose rows a GPU's products want to be multiples of 16 bytes: 37 and 21 are none.
TEST_P(Captured, ProductsOfUnevenRows) {
  manual_seed(3);
  Tensor x0 = randn({2, 37, 32}).to(kBFloat16), w0 = (randn({96, 32}) / 6).to(kBFloat16),
         c0 = (randn({21, 32}) / 6).to(kBFloat16);
  x0[0][5][3] = INFINITY;  // of one sample: the other stays as it is
  auto run = [&](const char* device) {
    Tensor x = x0.to(Device(device)), w = w0.to(Device(device)).clone().set_requires_grad(true),
           c = c0.to(Device(device)).clone().set_requires_grad(true);
    auto f = compile(
        [&] {
          Tensor qkv = x.matmul(w.t()).view({2, 37, 3, 2, 16}).permute({2, 0, 3, 1, 4});
          Tensor scores = qkv[0].matmul(qkv[1].transpose(-2, -1)).to(kFloat32) * 0.25;
          Tensor out = scores.softmax(-1).to(kBFloat16).matmul(qkv[2]).transpose(1, 2).reshape({2, 37, 32});
          Tensor classes = out.matmul(c.t()).to(kFloat32);
          Tensor loss = -classes.log_softmax(-1).select(2, 4).select(0, 1).mean();
          loss.backward();
          return std::vector<Tensor>{loss.detach(), classes[1], scores.amax({0, 1, 2})};
        },
        {.backend = GetParam()});
    std::vector<Tensor> all = f();
    all.push_back(w.grad());
    all.push_back(c.grad());
    for (Tensor& t : all) t = t.to(Device("cpu")).to(kFloat32);
    return all;
  };
  std::vector<Tensor> expected = run("cpu"), got = run("emu");
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(got[i].allclose(expected[i], 2e-2, 2e-3, true)) << i << "\n" << (got[i] - expected[i]).abs().max();
}

TEST_P(Captured, TrainsAStep) {
  manual_seed(1);
  Tensor w0 = randn({5, 3}), x0 = randn({8, 5}), y0 = randn({8, 3});
  auto losses = [&](const char* device) {
    Tensor w = w0.to(Device(device)).clone().set_requires_grad(true), x = x0.to(Device(device)),
           y = y0.to(Device(device));
    auto step = compile(
        [&](const Tensor& a, const Tensor& b) {
          Tensor loss = (a.mm(w).tanh() - b).pow(2).mean();
          loss.backward();
          return loss.detach();
        },
        {.backend = GetParam()});
    std::vector<double> out;
    for (int i = 0; i < 4; ++i) {
      out.push_back(step(x, y).item<double>());
      NoGradGuard guard;
      w.sub_(w.grad() * 0.1);
      w.mutable_grad().reset();
    }
    return out;
  };
  std::vector<double> cpu = losses("cpu"), emulated = losses("emu");
  for (size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(cpu[i], emulated[i], 1e-5);
}

TEST_P(Captured, GradientsOfWhatItGives) {
  auto f = compile([](const Tensor& x) { return (x.sin() * x).sum(); }, {.backend = GetParam()});
  Tensor x = arange(5, there().dtype(kFloat32)).set_requires_grad(true);
  f(x).backward();
  Tensor want = (x.sin() + x * x.cos()).detach();
  EXPECT_TRUE(x.grad().cpu().allclose(want.cpu(), 1e-5, 1e-5));
}

TEST_P(Captured, RandomNumbersAreTheSame) {
  auto f = compile([](const Tensor& x) { return x + rand_like(x); }, {.backend = GetParam()});
  Tensor x = zeros({50});
  manual_seed(5);
  Tensor a = f(x), b = f(x);
  manual_seed(5);
  Tensor c = f(x.to(Device("emu"))), d = f(x.to(Device("emu")));
  EXPECT_TRUE(c.cpu().allclose(a, 1e-6, 1e-6));
  EXPECT_TRUE(d.cpu().allclose(b, 1e-6, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Backends, Captured, testing::Values("inductor", "interpreter", "eager", "aot_eager"),
                         [](const auto& info) { return std::string(info.param); });

TEST(DevicesOfNumbers, TheGradientOfANumberIsWhereTheNumberIs) {
  Tensor x = arange(4, kFloat32).to(Device("emu")), n = tensor(2.0, Device("cpu")).set_requires_grad(true);
  auto compiled = compile([&](const Tensor& t) { return (t * n).sum(); });
  for (int i = 0; i < 3; ++i) {
    n.mutable_grad().reset();
    compiled(x).backward();
    EXPECT_EQ(n.grad().device().str(), "cpu");
    EXPECT_EQ(n.grad().item<float>(), 6.0f);
  }
}

TEST(CapturedDevices, AnotherDeviceBeginsAnotherSegment) {
  auto f = compile([](const Tensor& x) {
    Tensor a = (x * 2).to(Device("emu:1")) + 1;
    return a.cpu() * 3;
  });
  Tensor x = ones({3}, there());
  EXPECT_TRUE(f(x).equal(full({3}, 9.0)));
  auto whole = compile([](const Tensor& y) { return (y * 2).cpu() + 1; }, {.fullgraph = true});
  EXPECT_THROW(whole(x), Error);
}

TEST(CapturedDevices, MixturesAreErrors) {
  auto f = compile([](const Tensor& x, const Tensor& y) { return x + y; });
  try {
    f(ones({2}, there()), ones({2}));
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("found at least two devices, emu:0 and cpu!"), std::string::npos) << e.what();
  }
  EXPECT_TRUE(f(ones({2}), ones({2})).equal(full({2}, 2.0)));
}

TEST(CapturedDevices, FactoriesFollowTheDefaultDevice) {
  auto f = compile([](int64_t n) { return rand({n}) + zeros({n}); });
  EXPECT_EQ(f(3).device().str(), "cpu");
  set_default_device("emu");
  EXPECT_EQ(f(3).device().str(), "emu:0");
  set_default_device("cpu");
  EXPECT_EQ(f(3).device().str(), "cpu");
}

TEST(CapturedDevices, ChecksAreRaisedAtTheNextWait) {
  auto f = compile([](const Tensor& table, const Tensor& at) { return table.index_select(0, at) * 2; });
  Tensor table = arange(4, there().dtype(kFloat32));
  EXPECT_EQ(f(table, tensor({1, 2}, there())).sum().item<float>(), 6.0f);
  Tensor wrong = f(table, tensor({1, 7}, there()));
  EXPECT_THROW(wrong.cpu(), IndexError);
  EXPECT_EQ(f(table, tensor({0, 3}, there())).sum().item<float>(), 6.0f);
}

TEST(CapturedDevices, MemoryThatRunsOutLeavesNothing) {
  synchronize(Device("emu"));
  empty_cache(Device("emu"));
  auto f = compile([](const Tensor& x) { return x.reshape({-1, 1}) * x.reshape({1, -1}); });
  Tensor x = ones({3000}, there());
  synchronize(Device("emu"));
  int64_t before = memory_stats(Device("emu")).allocated_bytes.current;
  runtime::emu::limit_memory(0, size_t{24} << 20);
  EXPECT_THROW(f(x), OutOfMemoryError);
  EXPECT_EQ(memory_stats(Device("emu")).allocated_bytes.current, before);
  runtime::emu::limit_memory(0, 0);
  EXPECT_EQ(f(x).sum().item<float>(), 9e6f);
}

}  // namespace
}  // namespace brasa
