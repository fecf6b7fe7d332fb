#include "support/pooled.h"

#include <new>
#include <utility>

#include "support/thread_word.h"

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

constexpr size_t kStep = 16, kLargest = 512, kMostBlocks = 4096;

struct Block {
  Block* next;
};

struct Lists {
  Block* first[kLargest / kStep + 1] = {};
  size_t count[kLargest / kStep + 1] = {};
};
// Trivial, so that they can be read while the thread's other objects are destroyed.
BRASA_THREAD_WORD Lists* lists = nullptr;
BRASA_THREAD_WORD bool closed = false;

struct Holder {
  Lists here;
  Holder() { lists = &here; }
  ~Holder() {
    lists = nullptr;
    closed = true;
    for (Block*& first : here.first)
      while (first) ::operator delete(std::exchange(first, first->next));
  }
};

[[gnu::cold, gnu::noinline]] void open_lists() {
  if (!closed) thread_local Holder holder;
}

}  // namespace

void* pool_allocate(size_t bytes) {
  size_t c = (bytes + kStep - 1) / kStep;
  if (kPool && bytes <= kLargest) {
    Lists* here = lists;
    if (Block* b = here ? here->first[c] : nullptr) {
      here->first[c] = b->next;
      --here->count[c];
      return b;
    }
    return ::operator new(c * kStep);
  }
  return ::operator new(bytes);
}

void pool_deallocate(void* p, size_t bytes) noexcept {
  size_t c = (bytes + kStep - 1) / kStep;
  if (kPool && !lists) [[unlikely]]
    open_lists();
  Lists* here = lists;
  if (!kPool || bytes > kLargest || !here || here->count[c] == kMostBlocks) {
    ::operator delete(p);
    return;
  }
  auto* b = static_cast<Block*>(p);
  b->next = here->first[c];
  here->first[c] = b;
  ++here->count[c];
}

}  // namespace brasa
