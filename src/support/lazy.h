#pragma once

#include <atomic>
#include <mutex>
#include <type_traits>

#include "support/mutex.h"

namespace brasa {

/// An object that its first user makes, and that lives as long as the process; of a reference, what is found then. It is made under a
/// lock, for which a fork waits (see mutex.h): a child that finds a static of a function half made, by a thread that it has not, waits for
/// ever.
///
///     Registry& registry() {
///       static constinit Lazy<Registry> all;
///       return *all;
///     }
template <typename T>
class Lazy {
 public:
  using Object = std::remove_reference_t<T>;

  constexpr explicit Lazy(T (*make)() = [] { return T(); }) : make_(make) {}
  Lazy(const Lazy&) = delete;
  Lazy& operator=(const Lazy&) = delete;

  Object& operator*() {
    if (Object* made = made_.load(std::memory_order_acquire)) [[likely]]
      return *made;
    return made_now();
  }
  Object* operator->() { return &**this; }

 private:
  [[gnu::noinline]] Object& made_now() {
    std::lock_guard lock(making_);
    Object* made = made_.load(std::memory_order_relaxed);
    if (!made) {
      if constexpr (std::is_reference_v<T>)
        made = &make_();
      else
        made = new Object(make_());
      made_.store(made, std::memory_order_release);
    }
    return *made;
  }

  std::atomic<Object*> made_{nullptr};
  T (*make_)();
  Mutex making_;
};

}  // namespace brasa
