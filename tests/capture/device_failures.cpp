// A training step on the emulated GPU that is stopped at every place where it can fail: nothing leaks, and the next step is right.
#include <gtest/gtest.h>

#include <brasa/memory.h>
#include <brasa/nn.h>
#include <brasa/optim.h>

#include "runtime/device.h"
#include "runtime/emu/inject.h"
#include "values.h"

namespace brasa {
namespace {

namespace emu = runtime::emu;

struct Training {
  nn::Sequential model{nn::Linear(32, 64), nn::ReLU(), nn::Linear(64, 8)};
  optim::SGD optimizer;
  Tensor x, y;

  Training() : optimizer(model->parameters(), optim::SGDOptions(0.1)) {}
  Tensor step() {
    optimizer.zero_grad();
    Tensor loss = (model->forward(x) - y).pow(2).mean();
    loss.backward();
    optimizer.step();
    return loss.detach();
  }
};

class DeviceFailures : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Modes, DeviceFailures, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "compiled" : "eager"; });

TEST_P(DeviceFailures, AreLocal) {
  Device device("emu");
  auto held = [&] {
    synchronize(device);
    return memory_stats(device).allocated_bytes.current;
  };
  Training t;
  manual_seed(5);
  t.model->to(device);
  t.x = randn({4096, 32}).to(device);
  t.y = randn({4096, 8}).to(device);
  auto compiled = compile([&] { return t.step(); });
  auto step = [&] { return GetParam() ? compiled() : t.step(); };
  for (int i = 0; i < 3; ++i) step();
  t.optimizer.zero_grad();
  int64_t before = held();
  int failures = 0;
  float loss = step().item<float>();
  for (int64_t n = 1; n < 400; ++n) {
    t.optimizer.zero_grad();
    ASSERT_EQ(held(), before) << n;
    emu::fail_launch(0, n);
    bool failed = false;
    try {
      step();
      synchronize(device);
    } catch (const Error&) {
      failed = true;
    }
    emu::fail_launch(0, 0);
    failures += failed;
    float now = step().item<float>();
    EXPECT_LE(now, loss * 1.001f) << "after failure " << n;
    loss = now;
    if (!failed) break;
  }
  EXPECT_GT(failures, GetParam() ? 1 : 10);
  // Memory that runs out, at every limit between what is held and what a step needs.
  int out_of_memory = 0;
  for (size_t room = 0; room < size_t{16} << 20; room += size_t{256} << 10) {
    t.optimizer.zero_grad();
    ASSERT_EQ(held(), before) << room;
    empty_cache(device);
    emu::limit_memory(0, static_cast<size_t>(before) + room);
    bool failed = false;
    try {
      step();
      synchronize(device);
    } catch (const OutOfMemoryError&) {
      failed = true;
    }
    emu::limit_memory(0, 0);
    out_of_memory += failed;
    EXPECT_LE(step().item<float>(), loss * 1.001f) << "after " << room;
  }
  std::cout << failures << " launches, " << out_of_memory << " limits of memory\n";
  EXPECT_GT(out_of_memory, 0);
}

// What a stopped call has of the host, such as the key of its random numbers, stays there.
TEST(StoppedCall, OfRandomNumbers) {
  Device device("emu"), usual = get_default_device();
  set_default_device(device);
  nn::Dropout drop(0.5);
  Tensor x = ones({64, 64});
  auto f = compile([&] {
    Tensor product = x.matmul(x);
    return drop(product.matmul(product));
  });
  synchronize(device);
  for (int64_t n = 1; n < 3; ++n) {
    emu::fail_launch(0, n);
    try {
      f();
      ADD_FAILURE() << n;
    } catch (const Error& e) {
      EXPECT_EQ(std::string(e.what()).find("internal"), std::string::npos) << e.what();
    }
    emu::fail_launch(0, 0);
    EXPECT_EQ(f().sizes(), x.sizes());
  }
  set_default_device(usual);
}

}  // namespace
}  // namespace brasa
