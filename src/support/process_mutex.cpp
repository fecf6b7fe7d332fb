#include "support/process_mutex.h"

#include <pthread.h>

#include <chrono>
#include <thread>
#include <vector>

#include "support/error.h"

namespace brasa {
namespace {

struct All {
  std::mutex mutex;
  std::vector<ProcessMutex*> list;
  bool held = false;
  static All& get() {
    static auto* all = new All;
    return *all;
  }

  // One may be asked for under another, in any order: all or none.
  bool take() {
    for (size_t i = 0; i < list.size(); ++i)
      if (!list[i]->try_lock()) {
        give_back(i);
        return false;
      }
    return true;
  }
  void give_back(size_t count) {
    while (count > 0) list[--count]->unlock();
  }

  void before_fork() {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    for (;;) {
      mutex.lock();
      held = take();
      if (held || std::chrono::steady_clock::now() > end) return;
      mutex.unlock();
      std::this_thread::yield();
    }
  }
  void after_fork() {
    if (held) give_back(list.size());
    mutex.unlock();
  }
};

}  // namespace

ProcessMutex::ProcessMutex() {
  static const int registered = pthread_atfork([] { All::get().before_fork(); }, [] { All::get().after_fork(); },
                                               [] { All::get().after_fork(); });
  BRASA_ASSERT(registered == 0, "pthread_atfork");
  All& all = All::get();
  std::lock_guard lock(all.mutex);
  all.list.push_back(this);
}

}  // namespace brasa
