#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "runtime/cpu/allocator.h"
#include "support/error.h"

namespace brasa::runtime::cpu {
namespace {

TEST(Allocator, AlignedAndDistinct) {
  std::mt19937 rng(1);
  struct Block {
    uint8_t* p;
    size_t size;
    uint8_t fill;
  };
  std::vector<Block> blocks;
  int64_t before = memory_stats().allocated;
  for (int i = 0; i < 3000; ++i) {
    if (blocks.size() > 40 || (i % 3 == 2 && !blocks.empty())) {
      Block b = blocks[rng() % blocks.size()];
      for (size_t at : {size_t{0}, b.size / 2, b.size - 1}) ASSERT_EQ(b.p[at], b.fill);
      deallocate(b.p, b.size);
      std::erase_if(blocks, [&](const Block& x) { return x.p == b.p; });
    } else {
      size_t size = 1 + rng() % (size_t{1} << (rng() % 23));
      auto* p = static_cast<uint8_t*>(allocate(size));
      ASSERT_EQ(reinterpret_cast<uintptr_t>(p) % 64, 0u);
      std::memset(p, i & 255, size);
      blocks.push_back({p, size, static_cast<uint8_t>(i & 255)});
    }
  }
  for (Block& b : blocks) deallocate(b.p, b.size);
  EXPECT_EQ(memory_stats().allocated, before);
}

TEST(Allocator, KeepsBlocksForReuse) {
  for (size_t size : {size_t{100}, size_t{5000}, size_t{300000}, size_t{16} << 20}) {
    void* p = allocate(size);
    deallocate(p, size);
    void* q = allocate(size);
    EXPECT_EQ(p, q) << size;
    deallocate(q, size);
  }
}

TEST(Allocator, CacheIsBounded) {
  empty_cache();
  set_cache_limit(size_t{4} << 20);
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(allocate(size_t{1} << 20));
  for (void* p : blocks) deallocate(p, size_t{1} << 20);
  EXPECT_LE(memory_stats().cached, int64_t{4} << 20);
  set_cache_limit(size_t{4} << 30);
  empty_cache();
  EXPECT_EQ(memory_stats().cached, 0);
}

TEST(Allocator, ZeroAndTooMuch) {
  EXPECT_EQ(allocate(0), nullptr);
  deallocate(nullptr, 0);
  EXPECT_THROW(allocate(size_t{1} << 60), Error);
}

TEST(Allocator, BlocksCrossThreads) {
  int64_t before = memory_stats().allocated;
  std::vector<std::thread> threads;
  std::vector<void*> made(400);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = t * 100; i < t * 100 + 100; ++i) made[i] = allocate(64 * (1 + i % 30));
    });
  for (auto& t : threads) t.join();
  for (int i = 0; i < 400; ++i) deallocate(made[i], 64 * (1 + i % 30));
  EXPECT_EQ(memory_stats().allocated, before);
}

}  // namespace
}  // namespace brasa::runtime::cpu
