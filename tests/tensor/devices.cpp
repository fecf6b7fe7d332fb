#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <sstream>

#include "runtime/device.h"
#include "runtime/emu/inject.h"
#include "runtime/toy_device.h"

// Tensors that live elsewhere, on the emulated GPU: where they are made, how they mix, what goes wrong.
namespace brasa {
namespace {

namespace emu = runtime::emu;

std::string message(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

int64_t bytes_held() { return memory_stats(Device("emu")).allocated_bytes.current; }

TEST(Devices, LengthsOfPackedSequencesAreOnTheHost) {
  auto lstm = [](Device device) {
    auto made = [&](IntArrayRef sizes) { return full(sizes, 0.5, TensorOptions(device)); };
    std::vector<Tensor> state = {made({1, 2, 3}), made({1, 2, 3})};
    std::vector<Tensor> weights = {made({12, 4}), made({12, 3})};
    Tensor rows = made({3, 4}), lengths = tensor({2, 1});
    return call("aten::lstm.data", {rows, lengths, state, weights, false, 1, 0.0, false, false})[0];
  };
  Tensor there = lstm(Device("emu"));
  EXPECT_EQ(there.device().str(), "emu:0");
  EXPECT_TRUE(allclose(there.cpu(), lstm(Device("cpu"))));
}

TEST(Devices, TensorsLiveWhereTheyAreMade) {
  Tensor a = ones({2, 3}, TensorOptions(Device("emu"))), b = full({3}, 2.0, TensorOptions(Device("emu:0")));
  EXPECT_EQ(a.device().str(), "emu:0");
  Tensor c = a * b + 1;
  EXPECT_EQ(c.device().str(), "emu:0");
  EXPECT_EQ(c.toString(), "EMUFloatType");
  EXPECT_TRUE(c.cpu().equal(full({2, 3}, 3.0)));
  EXPECT_EQ(c.sum().item<float>(), 18.0f);
  Tensor on_one = empty({2}, TensorOptions(Device("emu:1")));
  EXPECT_EQ(zeros_like(on_one).device().str(), "emu:1");
  EXPECT_EQ(zeros_like(on_one, TensorOptions(Device("emu:0"))).device().str(), "emu:0");
  EXPECT_EQ(arange(5, TensorOptions(Device("emu"))).cpu().sum().item<int64_t>(), 10);
  EXPECT_EQ(tensor({1, 2, 3}, TensorOptions(Device("emu"))).cpu()[2].item<int64_t>(), 3);
  std::ostringstream out;
  out << tensor({1.5, 2.5}, TensorOptions(Device("emu")));
  EXPECT_EQ(out.str(), " 1.5000\n 2.5000\n[ EMUFloatType{2} ]");
}

TEST(Devices, RandomNumbersAreTheSameEverywhere) {
  manual_seed(3);
  Tensor here = randn({100});
  manual_seed(3);
  Tensor there = randn({100}, TensorOptions(Device("emu")));
  EXPECT_EQ(there.device().str(), "emu:0");
  EXPECT_TRUE(there.cpu().allclose(here, 1e-6, 1e-6));
}

TEST(Devices, CopiesGoEveryWay) {
  Tensor x = arange(12, kFloat32).reshape({3, 4}), e = x.to(Device("emu"));
  EXPECT_TRUE(e.t().cpu().equal(x.t()));
  EXPECT_TRUE(e.to(Device("emu:1")).cpu().equal(x));
  EXPECT_EQ(e.to(Device("emu:1"), kInt64).scalar_type(), kInt64);
  EXPECT_TRUE(e.to(Device("emu")).is_same(e));
  // Into strided memory, with another dtype, broadcast.
  Tensor to = zeros({4, 3}, TensorOptions(Device("emu")));
  to.t().copy_(x.to(kFloat64));
  EXPECT_TRUE(to.cpu().equal(x.t()));
  Tensor back = zeros({3, 4});
  back.copy_(e.select(0, 1));
  EXPECT_TRUE(back.equal(x.select(0, 1).expand({3, 4})));
  Tensor pinned = x.pin_memory();
  EXPECT_TRUE(pinned.is_pinned());
  EXPECT_FALSE(x.is_pinned());
  Tensor late = pinned.to(Device("emu"), kFloat32, /*non_blocking=*/true);
  EXPECT_TRUE(late.cpu().equal(x));
}

TEST(Devices, GradientsTravel) {
  Tensor w = ones({3}, requires_grad()), x = tensor({1.0, 2.0, 3.0}, TensorOptions(Device("emu")));
  Tensor loss = (w.to(Device("emu")) * x).pow(2).sum();
  loss.backward();
  EXPECT_EQ(w.grad().device().str(), "cpu");
  EXPECT_TRUE(w.grad().equal(tensor({2.0, 8.0, 18.0})));
  Tensor v = ones({3}, TensorOptions(Device("emu")).requires_grad(true));
  (v * 2).cpu().sum().backward();
  EXPECT_EQ(v.grad().device().str(), "emu:0");
  EXPECT_TRUE(v.grad().cpu().equal(full({3}, 2.0)));
}

TEST(Devices, TheGradientOfANumberIsWhereTheNumberIs) {
  Tensor x = arange(4, kFloat32).to(Device("emu")), n = tensor(2.0).set_requires_grad(true);
  (x * n).sum().backward();
  EXPECT_EQ(n.grad().device().str(), "cpu");
  EXPECT_EQ(n.grad().item<float>(), 6.0f);
}

TEST(Devices, NumbersMixAndOtherTensorsDoNot) {
  Tensor e = ones({2}, TensorOptions(Device("emu")));
  Tensor half = tensor(0.5);
  EXPECT_EQ(half.device().str(), "cpu");
  EXPECT_EQ((e * half).device().str(), "emu:0");
  EXPECT_TRUE((half - e).cpu().equal(full({2}, -0.5)));
  half.fill_(4);  // the host's memory is read at the call
  EXPECT_TRUE((e * half).cpu().equal(full({2}, 4.0)));
  EXPECT_TRUE(where(e > 0, e, tensor(2.0)).cpu().equal(ones({2})));
  std::string text = message([&] { e + ones({2}); });
  EXPECT_NE(text.find("Expected all tensors to be on the same device, but found at least two devices, emu:0 and cpu!"),
            std::string::npos)
      << text;
  text = message([&] { e + ones({2}, TensorOptions(Device("emu:1"))); });
  EXPECT_NE(text.find("emu:0 and emu:1!"), std::string::npos) << text;
  EXPECT_NE(text.find("float32[2] on emu:1"), std::string::npos) << text;
  EXPECT_THROW(half.add_(e.sum()), Error);
  EXPECT_THROW(ones({2}).add_(e), Error);
  EXPECT_THROW(cat({e, ones({2})}), Error);
  // Indices of the host go along.
  EXPECT_EQ(e.index({tensor({0, 1, 1})}).sizes(), IntArrayRef({3}));
}

TEST(Devices, WhatIsNotThere) {
  EXPECT_NE(message([] { ones({2}, TensorOptions(Device("emu:9"))); }).find("device 'emu:9' is not there"),
            std::string::npos);
  EXPECT_NE(message([] { ones({2}).to(Device("mps")); }).find("device 'mps': Brasa has no such devices"),
            std::string::npos);
  emu::lack(0, kFloat64);
  EXPECT_NE(
      message([] { ones({2}, TensorOptions(Device("emu")).dtype(kFloat64)); }).find("device 'emu:0' has no float64"),
      std::string::npos);
  EXPECT_THROW(ones({2}, kFloat64).to(Device("emu")), Error);
  EXPECT_EQ(ones({2}, kFloat64).to(Device("emu"), kFloat32).device().str(), "emu:0");
  emu::lack(0, kFloat64, false);
}

TEST(Devices, ChecksAreRaisedAtTheNextWait) {
  Tensor table = arange(10, TensorOptions(Device("emu")).dtype(kFloat32));
  Tensor bad = tensor({1, 50}, TensorOptions(Device("emu")));
  Tensor taken = table.index_select(0, bad);  // does not wait
  std::string text = message([&] { taken.sum().item(); });
  EXPECT_NE(text.find("index"), std::string::npos) << text;
  EXPECT_NE(text.find("index_select"), std::string::npos) << text;
  EXPECT_EQ(table.sum().item<float>(), 45.0f);  // and that was all
  table.index_select(0, bad);
  EXPECT_THROW(synchronize(Device("emu")), IndexError);
  EXPECT_NO_THROW(synchronize(Device("emu")));
}

TEST(Devices, MemoryThatRunsOutInTheMiddle) {
  synchronize(Device("emu"));
  empty_cache(Device("emu"));
  int64_t before = bytes_held();
  emu::limit_memory(0, size_t{96} << 20);
  {
    Tensor w = ones({1 << 20}, TensorOptions(Device("emu")).requires_grad(true));  // 4 MiB
    auto step = [&](int64_t n) {
      Tensor y = w;
      std::vector<Tensor> kept;
      for (int64_t i = 0; i < n; ++i) kept.push_back(y = (y * 1.5).sin());
      y.sum().backward();
    };
    EXPECT_THROW(step(40), OutOfMemoryError);
    w.mutable_grad().reset();
    step(2);
    EXPECT_TRUE(w.grad().defined());
  }
  emu::limit_memory(0, 0);
  synchronize(Device("emu"));
  EXPECT_EQ(bytes_held(), before);
}

TEST(Devices, FailedLaunchesAndALostDevice) {
  Tensor x = ones({4}, TensorOptions(Device("emu")));
  synchronize(Device("emu"));
  int64_t before = bytes_held();
  emu::fail_launch(0, 1);
  EXPECT_NE(message([&] { x + 1; }).find("a kernel could not be launched"), std::string::npos);
  EXPECT_EQ(bytes_held(), before);
  EXPECT_EQ((x + 1).sum().item<float>(), 8.0f);
  emu::lose(0);
  EXPECT_NE(message([&] { x + 1; }).find("is lost"), std::string::npos);
  EXPECT_THROW(x.cpu(), Error);
  emu::come_back(0);
  EXPECT_EQ(ones({4}, TensorOptions(Device("emu"))).sum().item<float>(), 4.0f);
}

TEST(Devices, GuardAndDefault) {
  {
    DeviceGuard guard("emu:1");
    EXPECT_EQ(ones({1}, TensorOptions(Device("emu"))).device().str(), "emu:1");
  }
  set_default_device("emu");
  EXPECT_EQ(ones({1}).device().str(), "emu:0");
  EXPECT_EQ(rand({1}).device().str(), "emu:0");
  EXPECT_EQ(tensor({1.0}).device().str(), "emu:0");
  float memory[] = {1, 2};
  EXPECT_EQ(from_blob(memory, {2}).device().str(), "cpu");
  set_default_device("cpu");
  EXPECT_EQ(ones({1}).device().str(), "cpu");
}

TEST(Devices, LibrariesOfTheHostAreCounted) {
  Tensor x = tensor({3.0, 1.0, 2.0}, TensorOptions(Device("emu")));
  int64_t before = runtime::host_steps();
  EXPECT_TRUE(std::get<0>(x.sort()).cpu().equal(tensor({1.0, 2.0, 3.0})));
  EXPECT_GT(runtime::host_steps(), before);
}

TEST(Devices, AFourthRowNeedsNothingElse) {
  test::Toy& toy = test::add_toy();
  int64_t launches = toy.launches;
  {
    Tensor x = ones({3, 3}, TensorOptions(Device("toy")).requires_grad(true));
    Tensor loss = x.mm(x).relu().sum();
    loss.backward();
    EXPECT_EQ(x.grad().device().str(), "toy:0");
    EXPECT_EQ(loss.item<float>(), 27.0f);
    EXPECT_TRUE(x.grad().cpu().equal(full({3, 3}, 6.0)));
  }
  EXPECT_GT(toy.launches, launches);
  EXPECT_EQ(toy.held, 0);
}

}  // namespace
}  // namespace brasa
