#include <gtest/gtest.h>

#include <brasa/brasa.h>
#include <brasa/compile.h>
#include <brasa/device.h>

#include "runtime/device.h"
#include "runtime/emu/inject.h"

// Runs that begin while a call records, on the emulated GPU: whatever the call turns out to be, its results are eager's.
namespace brasa {
namespace {

namespace emu = runtime::emu;

Tensor on_emu(const Tensor& t) { return t.to(Device("emu")); }
void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_TRUE(allclose(a.cpu(), b.cpu(), 1e-5, 1e-6)) << a.cpu() << b.cpu();
}

class RunAhead : public ::testing::Test {
 protected:
  // Three rows of layers; the last one is where a call may go another way.
  Tensor layers(const Tensor& x) const { return x.mm(w_).tanh().mm(w_).sum({1}, true).expand({4, 8}).mm(v_); }
  Tensor w_ = on_emu(randn({8, 8}) * 0.1), v_ = on_emu(randn({8, 8}) * 0.1), x_ = on_emu(randn({4, 8}));
};

TEST_F(RunAhead, AnotherWayThanTheLastCall) {
  int way = 0;
  auto body = [&](const Tensor& x) {
    Tensor h = layers(x);
    return way == 0 ? h.sin() : way == 1 ? h.mm(w_).cos() : h.exp() + x;
  };
  auto f = compile(body);
  for (int i = 0; i < 30; ++i) {
    way = i % 7 % 3;
    expect_same(f(x_), body(x_));
  }
}

TEST_F(RunAhead, OtherInputs) {
  auto body = [&](const Tensor& x) { return layers(x).sin(); };
  auto f = compile(body);
  for (int i = 0; i < 6; ++i) expect_same(f(x_), body(x_));
  Tensor other = on_emu(randn({4, 8})), rows = on_emu(randn({33}))[0],
         uneven = on_emu(randn({33})).slice(0, 1).reshape({4, 8});
  for (const Tensor& x : {other, uneven, x_, uneven}) expect_same(f(x), body(x));
  // The same function where the host computes, and back.
  w_ = w_.cpu(), v_ = v_.cpu();
  Tensor here = x_.cpu();
  for (int i = 0; i < 3; ++i) expect_same(f(here), body(here));
  w_ = on_emu(w_), v_ = on_emu(v_);
  for (int i = 0; i < 3; ++i) expect_same(f(x_), body(x_));
}

// What is read ahead is read as it was before the call.
TEST_F(RunAhead, WritesInTheFunction) {
  auto body = [&](Tensor x, Tensor w) {
    Tensor y = x.mm(w).tanh();
    w.mul_(0.5);
    x.add_(y);
    return x.mm(w).sum();
  };
  auto f = compile(body);
  Tensor x = x_.clone(), w = w_.clone(), other_x = x_.clone(), other_w = w_.clone();
  for (int i = 0; i < 6; ++i) {
    expect_same(f(x, w), body(other_x, other_w));
    expect_same(x, other_x);
    expect_same(w, other_w);
  }
}

TEST_F(RunAhead, ABreakAndAnErrorOfTheFunction) {
  bool fails = false;
  auto body = [&](const Tensor& x) {
    Tensor h = layers(x);
    if (fails) throw std::runtime_error("the function's");
    double sum = h.sum().item<double>();
    return h.mm(w_) * sum;
  };
  auto f = compile(body);
  for (int i = 0; i < 8; ++i) {
    fails = i % 4 == 3;
    if (fails)
      EXPECT_THROW(f(x_), std::runtime_error);
    else
      expect_same(f(x_), body(x_));
  }
}

// A device's failure is raised where the run would have failed, and the next call is right.
TEST_F(RunAhead, FailuresOfTheDevice) {
  auto body = [&](const Tensor& x) { return layers(x).sin(); };
  auto f = compile(body);
  Tensor want = body(x_);
  for (int launch = 1; launch <= 4; ++launch) {
    for (int i = 0; i < 3; ++i) expect_same(f(x_), want);
    emu::fail_launch(0, launch);
    EXPECT_THROW(f(x_), Error) << launch;
    emu::fail_launch(0, 0);
    expect_same(f(x_), want);
  }
  int64_t held = memory_stats(Device("emu")).allocated_bytes.current;
  for (int i = 0; i < 3; ++i) f(x_);
  EXPECT_EQ(memory_stats(Device("emu")).allocated_bytes.current, held);
}

TEST_F(RunAhead, AnotherStream) {
  auto body = [&](const Tensor& x) { return layers(x).sin(); };
  auto f = compile(body);
  Tensor want = body(x_).cpu();
  for (int i = 0; i < 3; ++i) f(x_);
  synchronize(Device("emu"));
  runtime::Device& device = runtime::device_of(Device("emu:0"));
  runtime::Stream stream = device.make_stream();
  {
    runtime::StreamScope scope(device, stream);
    expect_same(f(x_), want);
  }
  device.synchronize();
  device.destroy_stream(stream);
}

}  // namespace
}  // namespace brasa
