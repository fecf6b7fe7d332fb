#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <thread>

// Destructors of a thread's own objects run after those of what the library keeps for the thread.
namespace brasa {
namespace {

struct Last {
  double* out = nullptr;
  ~Last() {
    // Other operators than before, so that programs are made here.
    Tensor x = full({3}, 2.0);
    if (out) *out = (x.view({3, 1}) * x - x.square()).sum().item<double>();
  }
};
thread_local Last last;

TEST(ThreadEnd, DestructorsCompute) {
  for (int round = 0; round < 3; ++round) {
    double at_end = -1;
    std::thread([&] {
      last.out = &at_end;
      EXPECT_EQ((ones({4 + round}) * 2).sum().item<double>(), 2 * (4 + round));
    }).join();
    EXPECT_EQ(at_end, 0);
  }
}

}  // namespace
}  // namespace brasa
