#include "support/pooled.h"

#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace brasa {
namespace {

using Blocks = std::vector<std::pair<void*, size_t>>;

Blocks make(int count) {
  Blocks out;
  for (int i = 0; i < count; ++i) {
    size_t bytes = static_cast<size_t>(i * 37 % 600);  // the largest are not the pool's
    void* p = pool_allocate(bytes);
    std::memset(p, i, bytes);
    out.emplace_back(p, bytes);
  }
  return out;
}

// Blocks that are in use together do not overlap.
void expect_apart(const Blocks& blocks) {
  std::set<std::pair<char*, char*>> sorted;
  for (auto [p, bytes] : blocks) sorted.emplace(static_cast<char*>(p), static_cast<char*>(p) + bytes);
  EXPECT_EQ(sorted.size(), blocks.size());
  const char* end = nullptr;
  for (auto [from, to] : sorted) {
    EXPECT_GE(from, end);
    end = to;
  }
}

TEST(Pool, BlocksAreApart) {
  Blocks blocks = make(20000);
  expect_apart(blocks);
  for (auto [p, bytes] : blocks) pool_deallocate(p, bytes);
}

// A thread that frees what another one makes gives it back: by the end they have used little memory.
TEST(Pool, ThreadsThatOnlyFree) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep what was freed";
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "sanitizers keep what was freed";
#endif
#endif
  for (size_t bytes : {8u, 32u, 48u, 64u, 320u, 512u}) {
    std::set<void*> seen;
    std::vector<void*> handed;
    auto free_all = [&] {
      for (void* p : handed) pool_deallocate(p, bytes);
      handed.clear();
    };
    auto make_some = [&] {
      for (int i = 0; i < 1000; ++i) handed.push_back(pool_allocate(bytes));
      seen.insert(handed.begin(), handed.end());
    };
    // One thread that frees all the time, by turns with this one.
    std::atomic<int> turn{0};
    std::thread other([&] {
      void* own = pool_allocate(bytes);
      for (int round = 0; round < 200; ++round) {
        while (turn.load() != 2 * round + 1) std::this_thread::yield();
        free_all();
        turn = 2 * round + 2;
      }
      pool_deallocate(own, bytes);
    });
    for (int round = 0; round < 200; ++round) {
      while (turn.load() != 2 * round) std::this_thread::yield();
      make_some();
      turn = 2 * round + 1;
    }
    other.join();
    EXPECT_LT(seen.size(), 12000u) << bytes;
  }
}

// What a thread leaves when it ends is used again.
TEST(Pool, ThreadsThatEnd) {
  for (int round = 0; round < 50; ++round) {
    Blocks blocks;
    std::thread([&] { blocks = make(500); }).join();
    expect_apart(blocks);
    std::thread([&] {
      for (auto [p, bytes] : blocks) pool_deallocate(p, bytes);
    }).join();
  }
}

}  // namespace
}  // namespace brasa
