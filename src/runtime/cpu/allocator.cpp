#include "runtime/cpu/allocator.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/thread_object.h"

namespace brasa::runtime::cpu {
namespace {

constexpr size_t kAlignment = 64, kHugePage = size_t{2} << 20, kSmall = size_t{64} << 10;

// Classes: multiples of 64 up to 1 KiB, then four a power of two, so that at most a fifth of a block is unused.
constexpr int kLinear = 16;

size_t class_of(size_t bytes) {
  if (bytes <= kLinear * kAlignment) return (bytes + kAlignment - 1) / kAlignment - 1;
  int top = std::bit_width(bytes - 1) - 1;  // 2^top < bytes <= 2^(top + 1)
  size_t quarter = (bytes - 1) >> (top - 2) & 3;
  return kLinear + (top - 10) * 4 + quarter;
}
size_t class_size(size_t c) {
  if (c < kLinear) return (c + 1) * kAlignment;
  size_t top = 10 + (c - kLinear) / 4, quarter = (c - kLinear) % 4;
  return (size_t{1} << top) + ((quarter + 1) << (top - 2));
}
constexpr size_t kClasses = kLinear + (48 - 10) * 4, kSmallClasses = kLinear + 6 * 4;

void* system_allocate(size_t size) {
  if (size < kHugePage) return std::aligned_alloc(kAlignment, size);
  // Aligned, so that the system can make huge pages of it.
  size_t reserve = size + kHugePage;
  void* raw = mmap(nullptr, reserve, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (raw == MAP_FAILED) return nullptr;
  auto begin = reinterpret_cast<uintptr_t>(raw), aligned = (begin + kHugePage - 1) & ~(kHugePage - 1);
  size_t mapped = (size + 4095) & ~size_t{4095};
  if (aligned > begin) munmap(raw, aligned - begin);
  size_t tail = begin + reserve - (aligned + mapped);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + mapped), tail);
  return reinterpret_cast<void*>(aligned);
}
// Memory that is used again may become huge pages, in the background. At its first use these cost more than they give: a virtual
// machine that hands free huge pages back to its host waits for each of them.
void expect_use(void* p, size_t size) {
  if (size >= kHugePage) madvise(p, size & ~size_t{4095}, MADV_HUGEPAGE);
}
void system_deallocate(void* p, size_t size) {
  if (size < kHugePage)
    std::free(p);
  else
    munmap(p, (size + 4095) & ~size_t{4095});
}

size_t default_limit() {
  size_t physical = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return std::min<size_t>(physical / 4, size_t{4} << 30);
}

class Cache {
 public:
  // Never destroyed: tensors in static objects are given back after it would be.
  static Cache& get() {
    static constinit Lazy<Cache> cache;
    return *cache;
  }
  void* take(size_t c) {
    size_t size = class_size(c);
    if (void* p = take_free(c)) {
      expect_use(p, size);
      return p;
    }
    if (void* p = system_allocate(size)) return p;
    clear();
    void* p = system_allocate(size);
    BRASA_CHECK(p, "out of memory: ", size, " bytes could not be allocated (", allocated.load(), " bytes are in use)");
    return p;
  }
  void give(void* p, size_t c) {
    size_t size = class_size(c);
    {
      std::lock_guard lock(mutex_);
      if (cached_ + size <= limit_) {
        free_[c].push_back(p);
        cached_ += size;
        return;
      }
    }
    system_deallocate(p, size);
  }
  void clear() {
    std::lock_guard lock(mutex_);
    for (size_t c = 0; c < kClasses; ++c) {
      for (void* p : free_[c]) system_deallocate(p, class_size(c));
      free_[c].clear();
    }
    cached_ = 0;
  }
  void set_limit(size_t bytes) {
    {
      std::lock_guard lock(mutex_);
      limit_ = bytes;
      if (cached_ <= limit_) return;
    }
    clear();
  }
  size_t cached() {
    std::lock_guard lock(mutex_);
    return cached_;
  }

  std::atomic<int64_t> allocated{0}, peak{0};

 private:
  void* take_free(size_t c) {
    std::lock_guard lock(mutex_);
    auto& list = free_[c];
    if (list.empty()) return nullptr;
    void* p = list.back();
    list.pop_back();
    cached_ -= class_size(c);
    return p;
  }
  Mutex mutex_;
  std::array<std::vector<void*>, kClasses> free_;
  size_t cached_ = 0, limit_ = default_limit();
};

// A few small blocks a thread without a lock.
struct ThreadCache {
  static constexpr int kDepth = 8;
  std::array<std::array<void*, kDepth>, kSmallClasses> blocks;
  std::array<uint8_t, kSmallClasses> counts{};
  ~ThreadCache() {
    for (size_t c = 0; c < kSmallClasses; ++c)
      for (int i = 0; i < counts[c]; ++i) Cache::get().give(blocks[c][i], c);
  }
};

}  // namespace

void* allocate(size_t bytes) {
  if (bytes == 0) return nullptr;
  BRASA_CHECK(bytes < size_t{1} << 47, "out of memory: ", bytes, " bytes were asked for");
  Cache& cache = Cache::get();
  size_t c = class_of(bytes);
  void* p = nullptr;
  if (bytes <= kSmall)
    if (ThreadCache* t = ThreadObject<ThreadCache>::get(); t && t->counts[c] > 0) p = t->blocks[c][--t->counts[c]];
  if (!p) p = cache.take(c);
  int64_t now = cache.allocated.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) + bytes;
  int64_t peak = cache.peak.load(std::memory_order_relaxed);
  while (now > peak && !cache.peak.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  return p;
}

void deallocate(void* p, size_t bytes) {
  if (!p) return;
  Cache& cache = Cache::get();
  cache.allocated.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  size_t c = class_of(bytes);
  if (bytes <= kSmall)
    if (ThreadCache* t = ThreadObject<ThreadCache>::get(); t && t->counts[c] < ThreadCache::kDepth) {
      t->blocks[c][t->counts[c]++] = p;
      return;
    }
  cache.give(p, c);
}

void empty_cache() { Cache::get().clear(); }
void set_cache_limit(size_t bytes) { Cache::get().set_limit(bytes); }

}  // namespace brasa::runtime::cpu

namespace brasa {

MemoryStats memory_stats() {
  auto& cache = runtime::cpu::Cache::get();
  return {cache.allocated.load(), cache.peak.load(), static_cast<int64_t>(cache.cached())};
}
void reset_peak_memory_stats() {
  auto& cache = runtime::cpu::Cache::get();
  cache.peak.store(cache.allocated.load());
}

}  // namespace brasa
