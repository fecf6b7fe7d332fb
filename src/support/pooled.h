#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <utility>

#include "support/thread_object.h"

namespace brasa {

namespace detail {

// Sanitizers see a use after the end only in memory that goes back to the system.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kPool = false;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
constexpr bool kPool = false;
#else
constexpr bool kPool = true;
#endif
#else
constexpr bool kPool = true;
#endif

/// Blocks of a multiple of 16 bytes are of one class.
constexpr size_t kPoolStep = 16, kPoolSmallest = 2, kPoolLargest = 32;
constexpr size_t pool_class(size_t bytes) { return std::max(kPoolSmallest, (bytes + kPoolStep - 1) / kPoolStep); }

struct PoolBlock {
  PoolBlock* next;
  // Of a batch's first block.
  PoolBlock* next_batch;
  size_t count;
};
static_assert(sizeof(PoolBlock) <= kPoolSmallest * kPoolStep);

/// Free blocks of one class that a thread keeps: at most a batch, and some whole batches.
struct PoolList {
  static constexpr size_t kBatch = 256;
  PoolBlock *first = nullptr, *batches = nullptr;
  size_t count = 0, kept = 0;

  /// Of a list that has one, and of one that has less than a batch.
  void* take() {
    --count;
    return std::exchange(first, first->next);
  }
  void put(void* p) {
    auto* b = new (p) PoolBlock;
    b->next = std::exchange(first, b);
    ++count;
  }
};

/// A thread's, by class.
struct PoolLists {
  PoolList of[kPoolLargest + 1];
  ~PoolLists();
};

void* pool_refill(size_t bytes);
void pool_set_aside(void* p, size_t bytes) noexcept;

}  // namespace detail

/// Memory of small objects that come and go by the thousand: a recorded step makes and drops several for each operator, more
/// than malloc's own caches hold. Blocks of one size are kept by the thread that gave them back.
inline void* pool_allocate(size_t bytes) {
  size_t c = detail::pool_class(bytes);
  detail::PoolLists* lists = ThreadObject<detail::PoolLists>::known();
  if (!detail::kPool || c > detail::kPoolLargest || !lists || !lists->of[c].first) [[unlikely]]
    return detail::pool_refill(bytes);
  return lists->of[c].take();
}
inline void pool_deallocate(void* p, size_t bytes) noexcept {
  size_t c = detail::pool_class(bytes);
  detail::PoolLists* lists = ThreadObject<detail::PoolLists>::known();
  if (!detail::kPool || c > detail::kPoolLargest || !lists || lists->of[c].count == detail::PoolList::kBatch)
      [[unlikely]]
    return detail::pool_set_aside(p, bytes);
  lists->of[c].put(p);
}

/// Base of classes whose objects live in the pool.
struct Pooled {
  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { pool_deallocate(p, bytes); }
};

}  // namespace brasa
