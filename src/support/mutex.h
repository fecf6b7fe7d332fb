#pragma once

#include <mutex>
#include <shared_mutex>

namespace brasa {
namespace detail {

/// Before a thread takes a ForkSafe lock, and after it gave it back. While another thread forks, one that holds none waits here.
void begin_lock();
void end_lock();

}  // namespace detail

/// How many ForkSafe locks this thread holds.
int held_locks();

/// While this thread works for one that holds locks and waits for the work to end: it takes others as that one would.
class WorkForHolder {
 public:
  explicit WorkForHolder(bool holds);
  ~WorkForHolder();
  WorkForHolder(const WorkForHolder&) = delete;
  WorkForHolder& operator=(const WorkForHolder&) = delete;

 private:
  bool holds_;
};

/// A lock that no other thread holds while the process forks, so that the child finds it open and whole what it guards. A fork waits for
/// those that hold one: a minute at most, a second where nobody works.
template <class Lock>
class ForkSafe {
 public:
  void lock() {
    detail::begin_lock();
    lock_.lock();
  }
  bool try_lock() {
    detail::begin_lock();
    if (lock_.try_lock()) return true;
    detail::end_lock();
    return false;
  }
  void unlock() {
    lock_.unlock();
    detail::end_lock();
  }
  void lock_shared() {
    detail::begin_lock();
    lock_.lock_shared();
  }
  void unlock_shared() {
    lock_.unlock_shared();
    detail::end_lock();
  }

 private:
  Lock lock_;
};

using Mutex = ForkSafe<std::mutex>;
using RecursiveMutex = ForkSafe<std::recursive_mutex>;
using SharedMutex = ForkSafe<std::shared_mutex>;

}  // namespace brasa
