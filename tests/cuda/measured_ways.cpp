#include <gtest/gtest.h>

#include <brasa/brasa.h>

#include "compiler/kernels/measured_ways.h"
#include "fake.h"
#include "runtime/cuda/ways.h"
#include "support/str.h"

// Ways are measured once for each model of device, whatever the process.
namespace brasa {
namespace {

const bool kFakes = (test::use_fakes(), true);

using compiler::MeasuredWays;

// Runs of so many ways, the last of which takes the least time.
struct Ways {
  size_t count;
  int runs = 0;
  size_t chosen(const std::string& key, double seconds) {
    runtime::Device& device = runtime::device_of(kCUDA);
    MeasuredWays measuring(device, seconds);
    measuring.expect();
    measuring.begin("a test");
    runs = 0;
    return runtime::cuda::chosen(count, 2, key, measuring, device, runtime::kDefaultStream, [&](size_t way) {
      ++runs;
      return way + 1 == count ? 0 : 1;
    });
  }
};

TEST(MeasuredWays, AreKeptOnDisk) {
  std::string key = str("MeasuredWays.AreKeptOnDisk ", reinterpret_cast<uintptr_t>(&kFakes), " ", std::rand());
  Ways ways{3};
  EXPECT_EQ(ways.chosen(key, 0), 0U) << "no time";
  EXPECT_EQ(ways.runs, 0);
  EXPECT_EQ(ways.chosen(key, 20), 2U);
  EXPECT_EQ(ways.runs, 5) << "two ways that cannot run, and one three times";
  EXPECT_EQ(ways.chosen(key, 0), 2U);
  EXPECT_EQ(ways.runs, 0);
  Ways others{4};
  EXPECT_EQ(others.chosen(key, 20), 3U) << "another list of ways";
  EXPECT_EQ(Ways{1}.chosen(key, 20), 0U);
}

}  // namespace
}  // namespace brasa
