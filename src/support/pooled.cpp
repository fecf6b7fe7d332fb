#include "support/pooled.h"

#include <new>
#include <utility>

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

constexpr size_t kStep = 16, kLargest = 512, kMostBlocks = 4096;

struct Block {
  Block* next;
};

struct Lists {
  Block* first[kLargest / kStep + 1] = {};
  size_t count[kLargest / kStep + 1] = {};
  ~Lists() {
    for (Block* b : first)
      while (b) ::operator delete(std::exchange(b, b->next));
  }
};

}  // namespace

void* pool_allocate(size_t bytes) {
  size_t c = (bytes + kStep - 1) / kStep;
  if (kPool && bytes <= kLargest) {
    Lists* here = ThreadObject<Lists>::get();
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
  Lists* here = kPool && bytes <= kLargest ? ThreadObject<Lists>::get() : nullptr;
  if (!here || here->count[c] == kMostBlocks) {
    ::operator delete(p);
    return;
  }
  auto* b = static_cast<Block*>(p);
  b->next = here->first[c];
  here->first[c] = b;
  ++here->count[c];
}

}  // namespace brasa
