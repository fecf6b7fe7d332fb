#include "support/epoch.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/thread_object.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <mutex>
#include <utility>
#include <vector>

namespace brasa {
namespace {

long membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0); }

}  // namespace

// Where the system can run a barrier in all threads of the process, readers need none of their own.
const bool Epoch::cheap_ = membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) == 0;

namespace {

template <class Slot>
struct Slots {
  std::atomic<Slot*> first{nullptr};
  static Slots& get() {
    static constinit Lazy<Slots> slots;
    return *slots;
  }
  // Slots of threads that ended are used again; none is ever freed.
  Slot& take() {
    for (Slot* s = first.load(std::memory_order_acquire); s; s = s->next.load(std::memory_order_relaxed)) {
      bool free = false;
      if (s->taken.compare_exchange_strong(free, true)) return *s;
    }
    auto* s = new Slot;
    Slot* head = first.load(std::memory_order_relaxed);
    do s->next.store(head, std::memory_order_relaxed);
    while (!first.compare_exchange_weak(head, s, std::memory_order_release, std::memory_order_relaxed));
    return *s;
  }
};

struct Retired {
  uint64_t epoch;
  std::function<void()> free;
};
struct Waiting {
  Mutex mutex;
  std::vector<Retired> retired;
  static Waiting& get() {
    static constinit Lazy<Waiting> waiting;
    return *waiting;
  }
};

}  // namespace

Epoch::Reading::Slot& Epoch::Reading::slot() {
  struct Owner {
    Slot& slot = Slots<Slot>::get().take();
    ~Owner() { slot.taken.store(false); }
  };
  if (Owner* owner = ThreadObject<Owner>::get()) return owner->slot;
  // Destructors at the thread's end that still read keep one for good.
  BRASA_THREAD_WORD static Slot* last = nullptr;
  if (!last) last = &Slots<Slot>::get().take();
  return *last;
}

void Epoch::retire(std::function<void()> free) {
  std::vector<Retired> done;
  {
    Waiting& waiting = Waiting::get();
    std::lock_guard lock(waiting.mutex);
    waiting.retired.push_back({now_.fetch_add(1), std::move(free)});
    // Without the barrier nothing is known of the readers: what is retired waits for a later call.
    if (cheap_ && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) != 0) return;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    uint64_t oldest = kIdle;
    using Slot = Reading::Slot;
    for (Slot* s = Slots<Slot>::get().first.load(std::memory_order_acquire); s;
         s = s->next.load(std::memory_order_relaxed))
      oldest = std::min(oldest, s->since.load(std::memory_order_acquire));
    // A reader of the epoch in which something was unlinked may have seen it before.
    std::erase_if(waiting.retired, [&](Retired& r) {
      if (r.epoch >= oldest) return false;
      done.push_back(std::move(r));
      return true;
    });
  }
  for (Retired& r : done) r.free();
}

}  // namespace brasa
