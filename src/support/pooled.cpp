#include "support/pooled.h"

#include <mutex>

#include "support/mutex.h"

namespace brasa::detail {
namespace {

// Blocks are cut from slabs, which are never given back: malloc joins small blocks that are free beside each other, and a program that
// frees ten thousand of them pays for that at its next large block.
constexpr size_t kSlab = 16 << 10, kKept = 16;

/// Batches that threads have no use for, for those that have.
class Depot {
 public:
  void put(PoolBlock* batch, size_t count) {
    batch->count = count;
    std::lock_guard lock(mutex_);
    batch->next_batch = std::exchange(first_, batch);
  }
  PoolBlock* take() {
    std::lock_guard lock(mutex_);
    return first_ ? std::exchange(first_, first_->next_batch) : nullptr;
  }

 private:
  Mutex mutex_;
  PoolBlock* first_ = nullptr;
};

// Never destroyed: objects of other static lifetimes come back at the very end.
constinit Depot depots[kPoolLargest + 1];

void refill(PoolList& list, size_t c) {
  if (list.batches) {
    list.first = std::exchange(list.batches, list.batches->next_batch);
    list.count = PoolList::kBatch;
    --list.kept;
  } else if ((list.first = depots[c].take())) {
    list.count = list.first->count;
  } else {
    list.count = std::min(PoolList::kBatch, kSlab / (c * kPoolStep));
    char* slab = static_cast<char*>(::operator new(list.count * c * kPoolStep));
    for (size_t i = list.count; i-- > 0;) list.first = new (slab + i * c * kPoolStep) PoolBlock{list.first, nullptr, 0};
  }
}

void set_aside(PoolList& list, size_t c) {
  if (list.kept == kKept) {
    depots[c].put(list.first, list.count);
  } else {
    list.first->next_batch = std::exchange(list.batches, list.first);
    ++list.kept;
  }
  list.first = nullptr;
  list.count = 0;
}

void leave(PoolList& list, size_t c) {
  for (; list.batches; --list.kept)
    depots[c].put(std::exchange(list.batches, list.batches->next_batch), PoolList::kBatch);
  if (list.first) depots[c].put(std::exchange(list.first, nullptr), list.count);
}

}  // namespace

PoolLists::~PoolLists() {
  for (size_t c = 0; c <= kPoolLargest; ++c) leave(of[c], c);
}

void* pool_refill(size_t bytes) {
  size_t c = pool_class(bytes);
  if (!kPool || c > kPoolLargest) return ::operator new(bytes);
  if (PoolLists* here = ThreadObject<PoolLists>::get()) {
    if (!here->of[c].first) refill(here->of[c], c);
    return here->of[c].take();
  }
  // The thread has no lists any more.
  PoolList list;
  refill(list, c);
  void* p = list.take();
  leave(list, c);
  return p;
}

void pool_set_aside(void* p, size_t bytes) noexcept {
  size_t c = pool_class(bytes);
  if (!kPool || c > kPoolLargest) {
    ::operator delete(p);
    return;
  }
  if (PoolLists* here = ThreadObject<PoolLists>::get()) {
    PoolList& list = here->of[c];
    if (list.count == PoolList::kBatch) set_aside(list, c);
    list.put(p);
  } else {
    depots[c].put(new (p) PoolBlock{}, 1);
  }
}

}  // namespace brasa::detail
