#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace brasa {

/// Memory that readers without locks may still look at is freed when they are done. A reader is inside a `Reading`; a writer unlinks
/// what it takes away, and gives it to `retire`.
class Epoch {
 public:
  /// While one lives on this thread, what this thread can reach stays. Costs two stores; nests.
  class Reading {
   public:
    Reading() : slot_(slot()) {
      if (slot_.depth++ == 0) {
        slot_.since.store(now_.load(std::memory_order_relaxed), std::memory_order_relaxed);
        // The writer's side of this fence is a barrier in all threads (see epoch.cpp).
        std::atomic_signal_fence(std::memory_order_seq_cst);
        if (!cheap_) std::atomic_thread_fence(std::memory_order_seq_cst);
      }
    }
    ~Reading() {
      if (--slot_.depth == 0) slot_.since.store(kIdle, std::memory_order_release);
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    friend class Epoch;
    struct Slot {
      std::atomic<uint64_t> since{kIdle};
      uint32_t depth = 0;
      std::atomic<Slot*> next{nullptr};
      std::atomic<bool> taken{true};
    };
    static Slot& slot();
    Slot& slot_;
  };

  /// Calls `free` once no reader that began before this call is left: now, or in a later call of `retire`.
  static void retire(std::function<void()> free);

 private:
  static constexpr uint64_t kIdle = UINT64_MAX;
  inline static std::atomic<uint64_t> now_{0};
  static const bool cheap_;
};

}  // namespace brasa
