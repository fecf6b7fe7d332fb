#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/emu/inject.h"
#include "runtime/toy_device.h"
#include "support/str.h"

namespace brasa::runtime {
namespace {

Device& emu(int index = 0) { return device_of(brasa::Device(str("emu:", index))); }

std::string message(auto&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Table, NamesAndErrors) {
  EXPECT_EQ(device_of(kCPU).str(), "cpu");
  EXPECT_EQ(emu(1).str(), "emu:1");
  EXPECT_EQ(device_of(brasa::Device("emu")).str(), "emu:0");
  EXPECT_EQ(device_count(brasa::Device("emu").type()), 2);
  EXPECT_TRUE(is_available("emu:1"));
  EXPECT_FALSE(is_available("emu:2"));
  EXPECT_FALSE(is_available("xpu"));
  EXPECT_EQ(message([] { device_of(brasa::Device("emu:7")); }),
            "device 'emu:7' is not there: this machine has 2 of them, from 'emu:0' to 'emu:1'");
  EXPECT_EQ(message([] { device_of(brasa::Device("xpu")); }), "device 'xpu': Brasa has no such devices");
  EXPECT_NE(message([] { brasa::Device("rubbish"); }).find("Expected one of cpu"), std::string::npos);
  if (device_count(kCUDA) == 0) {
    EXPECT_NE(message([] { device_of(kCUDA); }).find("device 'cuda' is not there: "), std::string::npos);
  }
}

TEST(Table, GuardChoosesTheIndex) {
  {
    DeviceGuard guard("emu:1");
    EXPECT_EQ(resolved("emu").str(), "emu:1");
    EXPECT_EQ(guard.original_device().str(), "emu:0");
    EXPECT_THROW(DeviceGuard("emu:5"), Error);
  }
  EXPECT_EQ(resolved("emu").str(), "emu:0");
}

TEST(Table, AFourthRow) {
  test::Toy& toy = test::add_toy();
  EXPECT_EQ(&device_of(brasa::Device("toy")), &toy);
  std::ostringstream out;
  out << brasa::Device("toy:0");
  EXPECT_EQ(out.str(), "toy:0");
  EXPECT_THROW(add_device_row(test::kToyRow), Error);
}

TEST(Emulated, CopiesRunLateAndInOrder) {
  Device& d = emu();
  int value = 1, got = 0;
  void* p = d.allocate(sizeof value, kDefaultStream);
  d.upload(p, &value, sizeof value, kDefaultStream);
  value = 2;  // it has been taken
  EXPECT_GT(emu::waiting(0), 0u);
  d.download(&got, p, sizeof got, kDefaultStream);
  EXPECT_EQ(got, 1);
  EXPECT_EQ(emu::waiting(0), 0u);
  d.deallocate(p, sizeof value, kDefaultStream);
}

using EmulatedDeathTest = testing::Test;
TEST(EmulatedDeathTest, AHostAccessFaults) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        auto* p = static_cast<int*>(emu().allocate(64, kDefaultStream));
        *p = 1;
      },
      "");
}

TEST(Emulated, AForgottenWaitShowsAndAnEventMendsIt) {
  Device& d = emu();
  Stream other = d.make_stream();
  auto run = [&](bool wait) {
    int one = 1, two = 2, got = 0;
    void* p = d.allocate(sizeof one, kDefaultStream);
    d.upload(p, &one, sizeof one, kDefaultStream);
    d.upload(p, &two, sizeof two, kDefaultStream);
    if (wait) d.wait(other, d.record(kDefaultStream));
    d.download(&got, p, sizeof got, other);
    d.synchronize();
    d.deallocate(p, sizeof one, kDefaultStream);
    return got;
  };
  bool wrong = false;
  for (uint64_t s = 0; s < 20; ++s) {
    emu::seed(0, s);
    wrong = wrong || run(false) != 2;
    EXPECT_EQ(run(true), 2);
  }
  EXPECT_TRUE(wrong);
  d.destroy_stream(other);
}

TEST(Emulated, MemoryOfAnotherStreamIsNotGivenOutTooEarly) {
  Device& d = emu();
  d.empty_cache();
  Stream other = d.make_stream();
  constexpr size_t kBytes = 4096;
  void* p = d.allocate(kBytes, kDefaultStream);
  d.record_stream(p, other);
  d.fill(p, 1, kBytes, other);
  d.deallocate(p, kBytes, kDefaultStream);
  void* q = d.allocate(kBytes, kDefaultStream);
  EXPECT_NE(p, q);
  d.synchronize();
  void* r = d.allocate(kBytes, kDefaultStream);
  EXPECT_EQ(p, r);
  d.deallocate(q, kBytes, kDefaultStream);
  d.deallocate(r, kBytes, kDefaultStream);
  d.destroy_stream(other);
}

TEST(Emulated, ALostDeviceSaysSoUntilItComesBack) {
  Device& d = emu(1);
  void* p = d.allocate(100, kDefaultStream);
  emu::lose(1);
  EXPECT_NE(message([&] { d.fill(p, 0, 100, kDefaultStream); }).find("device 'emu:1' is lost"), std::string::npos);
  EXPECT_THROW(d.allocate(100, kDefaultStream), DeviceError);
  EXPECT_THROW(d.synchronize(), DeviceError);
  d.deallocate(p, 100, kDefaultStream);
  emu::come_back(1);
  EXPECT_NO_THROW(d.synchronize());
}

TEST(Allocator, SplitsMergesAndCounts) {
  Device& d = emu();
  d.synchronize();
  d.empty_cache();
  DeviceStats before = d.statistics();
  EXPECT_EQ(before.segment.current, before.allocation.current > 0 ? 1 : 0);  // the word for checks
  constexpr size_t kMiB = size_t{1} << 20;
  std::vector<void*> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(d.allocate(2 * kMiB, kDefaultStream));
  DeviceStats now = d.statistics();
  EXPECT_EQ(now.allocation.current - before.allocation.current, 4);
  EXPECT_EQ(now.allocated_bytes.current - before.allocated_bytes.current, static_cast<int64_t>(8 * kMiB));
  EXPECT_EQ(now.segment.current - before.segment.current, 1);  // all from one of 20 MiB
  EXPECT_EQ(now.inactive_split.current - before.inactive_split.current, 1);
  for (size_t i = 1; i < blocks.size(); ++i)
    EXPECT_EQ(static_cast<char*>(blocks[i]) - static_cast<char*>(blocks[i - 1]), static_cast<int64_t>(2 * kMiB));
  // Neighbours become one block again.
  d.deallocate(blocks[1], 2 * kMiB, kDefaultStream);
  d.deallocate(blocks[2], 2 * kMiB, kDefaultStream);
  void* both = d.allocate(4 * kMiB, kDefaultStream);
  EXPECT_EQ(both, blocks[1]);
  for (auto [p, n] : {std::pair(blocks[0], 2), {both, 4}, {blocks[3], 2}}) d.deallocate(p, n * kMiB, kDefaultStream);
  d.empty_cache();
  now = d.statistics();
  EXPECT_EQ(now.reserved_bytes.current, before.reserved_bytes.current);
  EXPECT_EQ(now.inactive_split.current, before.inactive_split.current);
  EXPECT_EQ(now.allocation.allocated - now.allocation.freed, now.allocation.current);
}

TEST(Allocator, SaysWhatIsMissingAndGoesOn) {
  Device& d = emu();
  d.synchronize();
  d.empty_cache();
  constexpr size_t kMiB = size_t{1} << 20;
  emu::limit_memory(0, 64 * kMiB);
  void* held = d.allocate(30 * kMiB, kDefaultStream);
  void* kept = d.allocate(12 * kMiB, kDefaultStream);
  void* part = d.allocate(4 * kMiB, kDefaultStream);
  d.deallocate(kept, 12 * kMiB, kDefaultStream);
  int64_t ooms = d.statistics().num_ooms;
  std::string text = message([&] { d.allocate(100 * kMiB, kDefaultStream); });
  EXPECT_NE(text.find("out of memory on device 'emu:0': 100.00 MiB were asked for; of 64.00 MiB it has "),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("tensors hold 34.00 MiB"), std::string::npos) << text;
  EXPECT_NE(text.find("the largest block has "), std::string::npos) << text;
  EXPECT_EQ(d.statistics().num_ooms, ooms + 1);
  EXPECT_THROW(d.allocate(100 * kMiB, kDefaultStream), OutOfMemoryError);
  d.deallocate(held, 30 * kMiB, kDefaultStream);
  // What is kept goes back where it is in the way.
  int64_t retries = d.statistics().num_alloc_retries;
  void* large = d.allocate(40 * kMiB, kDefaultStream);
  EXPECT_EQ(d.statistics().num_alloc_retries, retries + 1);
  d.deallocate(large, 40 * kMiB, kDefaultStream);
  d.deallocate(part, 4 * kMiB, kDefaultStream);
  emu::limit_memory(0, 0);
}

TEST(Allocator, AsksCallbacks) {
  Device& d = emu();
  d.synchronize();
  d.empty_cache();
  constexpr size_t kMiB = size_t{1} << 20;
  emu::limit_memory(0, 64 * kMiB);
  void* spare = d.allocate(40 * kMiB, kDefaultStream);
  size_t asked = 0;
  int handle = add_memory_callback([&](brasa::Device device, size_t bytes) {
    EXPECT_EQ(device.str(), "emu:0");
    asked = bytes;
    d.deallocate(std::exchange(spare, nullptr), 40 * kMiB, kDefaultStream);
    return true;
  });
  void* p = d.allocate(50 * kMiB, kDefaultStream);
  EXPECT_EQ(asked, 50 * kMiB);
  remove_memory_callback(handle);

  handle = add_memory_callback([](brasa::Device, size_t) -> bool { throw std::runtime_error("no idea"); });
  EXPECT_EQ(message([&] { d.allocate(50 * kMiB, kDefaultStream); }),
            "a callback for missing memory of device 'emu:0' failed: no idea");
  remove_memory_callback(handle);
  handle = add_memory_callback([](brasa::Device, size_t) { return true; });  // and frees nothing
  EXPECT_THROW(d.allocate(50 * kMiB, kDefaultStream), OutOfMemoryError);
  remove_memory_callback(handle);
  d.deallocate(p, 50 * kMiB, kDefaultStream);
  emu::limit_memory(0, 0);
}

TEST(Allocator, StreamsKeepTheirBlocks) {
  Device& d = emu();
  Stream other = d.make_stream();
  void* p = d.allocate(1000, other);
  d.deallocate(p, 1000, other);
  void* q = d.allocate(1000, kDefaultStream);
  EXPECT_NE(p, q);
  EXPECT_EQ(d.allocate(1000, other), p);
  d.deallocate(p, 1000, other);
  d.deallocate(q, 1000, kDefaultStream);
  d.destroy_stream(other);
}

}  // namespace
}  // namespace brasa::runtime
