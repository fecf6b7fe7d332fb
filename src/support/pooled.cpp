#include "support/pooled.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <utility>

#include "support/mutex.h"
#include "support/thread_object.h"

namespace brasa {
namespace {

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

// Blocks are cut from slabs, which are never given back: malloc joins small blocks that are free beside each other, and a program that
// frees ten thousand of them pays for that at its next large block.
constexpr size_t kStep = 16, kSmallest = 2, kLargest = 32;  // classes: blocks of a multiple of 16 bytes
constexpr size_t kSlab = 16 << 10, kBatch = 256, kKept = 16;

struct Block {
  Block* next;
  // Of a batch's first block.
  Block* next_batch;
  size_t count;
};
static_assert(sizeof(Block) <= kSmallest * kStep);

size_t class_of(size_t bytes) { return std::max(kSmallest, (bytes + kStep - 1) / kStep); }

/// Batches that threads have no use for, for those that have.
class Depot {
 public:
  void put(Block* batch, size_t count) {
    batch->count = count;
    std::lock_guard lock(mutex_);
    batch->next_batch = std::exchange(first_, batch);
  }
  Block* take() {
    std::lock_guard lock(mutex_);
    return first_ ? std::exchange(first_, first_->next_batch) : nullptr;
  }

 private:
  Mutex mutex_;
  Block* first_ = nullptr;
};

// Never destroyed: objects of other static lifetimes come back at the very end.
constinit Depot depots[kLargest + 1];

/// Free blocks of one class that a thread keeps: at most a batch, and some whole batches.
class List {
 public:
  Block* take(size_t c) {
    if (!first_) [[unlikely]]
      refill(c);
    --count_;
    return std::exchange(first_, first_->next);
  }
  void put(Block* b, size_t c) {
    if (count_ == kBatch) [[unlikely]]
      set_aside(c);
    b->next = std::exchange(first_, b);
    ++count_;
  }
  void leave(size_t c) {
    for (; batches_; --kept_) depots[c].put(std::exchange(batches_, batches_->next_batch), kBatch);
    if (first_) depots[c].put(std::exchange(first_, nullptr), count_);
  }

 private:
  void refill(size_t c) {
    if (batches_) {
      first_ = std::exchange(batches_, batches_->next_batch);
      count_ = kBatch;
      --kept_;
    } else if ((first_ = depots[c].take())) {
      count_ = first_->count;
    } else {
      count_ = std::min(kBatch, kSlab / (c * kStep));
      char* slab = static_cast<char*>(::operator new(count_ * c * kStep));
      for (size_t i = count_; i-- > 0;) first_ = new (slab + i * c * kStep) Block{first_, nullptr, 0};
    }
  }
  void set_aside(size_t c) {
    if (kept_ == kKept) {
      depots[c].put(first_, count_);
    } else {
      first_->next_batch = std::exchange(batches_, first_);
      ++kept_;
    }
    first_ = nullptr;
    count_ = 0;
  }

  Block *first_ = nullptr, *batches_ = nullptr;
  size_t count_ = 0, kept_ = 0;
};

struct Lists {
  List of[kLargest + 1];
  ~Lists() {
    for (size_t c = 0; c <= kLargest; ++c) of[c].leave(c);
  }
};

/// A block where the thread has no lists any more.
Block* without_lists(size_t c) {
  List list;
  Block* b = list.take(c);
  list.leave(c);
  return b;
}

}  // namespace

void* pool_allocate(size_t bytes) {
  size_t c = class_of(bytes);
  if (!kPool || c > kLargest) return ::operator new(bytes);
  Lists* here = ThreadObject<Lists>::get();
  return here ? here->of[c].take(c) : without_lists(c);
}

void pool_deallocate(void* p, size_t bytes) noexcept {
  size_t c = class_of(bytes);
  if (!kPool || c > kLargest) {
    ::operator delete(p);
    return;
  }
  Block* b = new (p) Block;
  if (Lists* here = ThreadObject<Lists>::get())
    here->of[c].put(b, c);
  else {
    b->next = nullptr;
    depots[c].put(b, 1);
  }
}

}  // namespace brasa
