#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/emu/inject.h"

// Streams and events of a device, on the emulated GPU: its streams run in an order that is drawn by lot, so what is missing shows.
namespace brasa {
namespace {

namespace emu = runtime::emu;

const Device kEmu("emu:0");

// Whether the result is right for each of these lots.
bool always(const std::function<bool()>& right) {
  for (uint64_t lot = 0; lot < 25; ++lot) {
    synchronize(kEmu);
    emu::seed(0, lot);
    if (!right()) return false;
  }
  return true;
}

class Streams : public ::testing::Test {
 protected:
  void TearDown() override { synchronize(kEmu); }
  Stream usual_ = default_stream(kEmu), other_ = stream_from_pool(kEmu);
  Tensor ones_ = ones({256}).to(kEmu);
};

TEST_F(Streams, ThePoolGoesRound) {
  Stream first = stream_from_pool(kEmu);
  EXPECT_NE(first, other_);
  EXPECT_NE(first, usual_);
  EXPECT_EQ(first.device(), kEmu);
  Stream last = first;
  for (int i = 0; i < 32; ++i) last = stream_from_pool(kEmu);
  EXPECT_EQ(first, last);
  EXPECT_NE(stream_from_pool(kEmu, true), stream_from_pool(kEmu, false));
}

TEST_F(Streams, GuardsNestAndEnd) {
  EXPECT_EQ(current_stream(kEmu), usual_);
  {
    StreamGuard guard(other_);
    EXPECT_EQ(current_stream(kEmu), other_);
    EXPECT_EQ(guard.original_stream(), usual_);
    Stream third = stream_from_pool(kEmu), elsewhere = stream_from_pool(Device("emu:1"));
    guard.reset_stream(third);
    EXPECT_EQ(current_stream(kEmu), third);
    {
      StreamGuard inner(elsewhere);
      EXPECT_EQ(resolved(Device("emu")), Device("emu:1"));
      EXPECT_EQ(current_stream(Device("emu")), elsewhere);
      EXPECT_EQ(current_stream(kEmu), third);
    }
    EXPECT_EQ(resolved(Device("emu")), kEmu);
    EXPECT_EQ(current_stream(Device("emu:1")).id(), 0u);
    EXPECT_EQ(guard.current_stream(), third);
  }
  EXPECT_EQ(current_stream(kEmu), usual_);
  EXPECT_THROW(StreamGuard guard(other_); guard.reset_stream(default_stream(kCPU)), Error);
  EXPECT_EQ(current_stream(kEmu), usual_);
}

// Work of one stream does not wait for another's unless it is told to.
TEST_F(Streams, WorkOfAGuardIsOnItsStream) {
  auto run = [&](bool told) {
    Tensor x = ones_.clone();
    x.mul_(3);
    if (told) other_.wait_stream(usual_);
    Tensor y;
    {
      StreamGuard guard(other_);
      y = x + 1;
      return y.cpu().equal(full({256}, 4.0));
    }
  };
  EXPECT_TRUE(always([&] { return run(true); }));
  EXPECT_FALSE(always([&] { return run(false); }));
}

TEST_F(Streams, MemoryThatAnotherStreamUsesIsNotGivenOut) {
  auto run = [&](bool told) {
    empty_cache(kEmu);
    Tensor x = ones_.clone();
    other_.wait_stream(usual_);
    Tensor y;
    {
      StreamGuard guard(other_);
      y = x + 1;
    }
    if (told) x.record_stream(other_);
    x = Tensor();
    Tensor z = full({256}, 7.0, TensorOptions(kEmu));  // where x was, or not
    other_.synchronize();
    StreamGuard guard(other_);
    return y.cpu().equal(full({256}, 2.0));
  };
  EXPECT_TRUE(always([&] { return run(true); }));
  EXPECT_FALSE(always([&] { return run(false); }));
  EXPECT_THROW(ones_.record_stream(default_stream(Device("emu:1"))), Error);
}

TEST_F(Streams, Events) {
  Event event, start(true), end(true);
  EXPECT_FALSE(event.recorded());
  EXPECT_TRUE(event.query());
  event.synchronize();
  event.block(other_);
  EXPECT_THROW(event.device(), Error);
  EXPECT_THROW(start.elapsed_time(end), Error);
  start.record(usual_);
  Tensor x = ones_ + 1;
  event.record(usual_);
  end.record(usual_);
  EXPECT_EQ(event.device(), kEmu);
  EXPECT_FALSE(event.query());
  EXPECT_FALSE(usual_.query());
  // Who asks again and again gets there.
  int asked = 0;
  while (!event.query() && asked < 1000) ++asked;
  EXPECT_LT(asked, 1000);
  event.synchronize();
  EXPECT_TRUE(event.query());
  EXPECT_GE(start.elapsed_time(end), 0);
  EXPECT_THROW(start.elapsed_time(event), Error);
  usual_.synchronize();
  EXPECT_TRUE(usual_.query());
  // Of another device.
  Event there(Device("emu:1"));
  there.block(usual_);
  EXPECT_THROW(start.elapsed_time(there), Error);
}

// The backward pass of what ran on another stream runs there, and the caller's stream goes on when its gradients are there.
TEST_F(Streams, BackwardIsOnTheStreamOfForward) {
  auto run = [&] {
    Tensor w = ones_.clone().requires_grad_();
    other_.wait_stream(usual_);
    Tensor y;
    {
      StreamGuard guard(other_);
      y = (w * 3).exp().log();
    }
    Stream seen = usual_;
    y.register_hook([&](Tensor g) {
      seen = current_stream(kEmu);
      return g;
    });
    usual_.wait_stream(other_);
    Tensor loss = (y * 2).sum();
    loss.backward();
    Tensor twice = w.grad() * 2;
    return seen == other_ && current_stream(kEmu) == usual_ && allclose(twice.cpu(), full({256}, 12.0));
  };
  EXPECT_TRUE(always(run));
}

TEST_F(Streams, OfTheHost) {
  Stream host = stream_from_pool(kCPU);
  EXPECT_EQ(host, default_stream(kCPU));
  StreamGuard guard(host);
  EXPECT_TRUE(host.query());
  host.synchronize();
  ones({2}).record_stream(host);
}

}  // namespace
}  // namespace brasa
