#include "support/mutex.h"

#include <pthread.h>
#include <time.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "support/error.h"
#include "support/fork.h"
#include "support/thread_word.h"

namespace brasa {
namespace {

// How many of its threads hold locks. Threads share few of these, so that they do not wait for one word's cache line.
struct alignas(64) Holders {
  std::atomic<int> count{0};
};
Holders g_holders[64];

std::atomic<bool> g_forking{false};
std::atomic<uint64_t> g_forks{0};
std::mutex g_fork;  // held by the thread that forks

BRASA_THREAD_WORD int t_depth = 0;
BRASA_THREAD_WORD Holders* t_holders = nullptr;

Holders& holders() {
  static std::atomic<unsigned> threads{0};
  if (!t_holders) t_holders = &g_holders[threads.fetch_add(1, std::memory_order_relaxed) % std::size(g_holders)];
  return *t_holders;
}

int others() {
  int sum = t_depth > 0 ? -1 : 0;
  for (const Holders& h : g_holders) sum += h.count.load();
  return sum;
}

// Processor time of the other threads.
std::chrono::nanoseconds work_of_others() {
  auto read = [](clockid_t clock) {
    timespec t{};
    clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
  };
  return read(CLOCK_PROCESS_CPUTIME_ID) - read(CLOCK_THREAD_CPUTIME_ID);
}

// Who compiles a large graph holds a lock for many seconds, and the child would wait for ever. Where nobody works, or this thread holds a
// lock, too, others may wait for this one.
void wait_for_others() {
  using std::chrono::steady_clock;
  constexpr std::chrono::seconds kIdle(1);
  const std::chrono::seconds longest(t_depth > 0 ? 1 : 60);
  auto begin = steady_clock::now(), last = begin;
  auto work = work_of_others();
  for (auto now = begin; others() > 0 && now - last < kIdle && now - begin < longest; now = steady_clock::now()) {
    if (auto seen = work_of_others(); seen - work >= std::chrono::milliseconds(1)) {
      work = seen;
      last = now;
    }
    // Most give theirs back at once.
    if (now - begin < std::chrono::milliseconds(1))
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
}

constinit OnFork* g_on_fork = nullptr;  // the last one first

void call_all(void (*const OnFork::*function)()) {
  for (const OnFork* f = g_on_fork; f; f = f->next)
    if (f->*function) (f->*function)();
}

void before_fork() {
  call_all(&OnFork::before);
  g_fork.lock();
  g_forking = true;
  wait_for_others();
}
void end_fork() {
  ++g_forks;
  g_forking = false;
  g_forking.notify_all();
  g_fork.unlock();
}
void in_parent() {
  end_fork();
  call_all(&OnFork::in_parent);
}
// The other threads are gone.
void in_child() {
  for (Holders& h : g_holders) h.count = 0;
  if (t_depth > 0) holders().count = 1;
  end_fork();
  call_all(&OnFork::in_child);
}

const bool g_registered = [] {
  int error = pthread_atfork(before_fork, in_parent, in_child);
  BRASA_ASSERT(error == 0, "pthread_atfork");
  return true;
}();

}  // namespace

OnFork::OnFork(void (*b)(), void (*p)(), void (*c)()) : before(b), in_parent(p), in_child(c), next(g_on_fork) {
  g_on_fork = this;
}

// Either the thread that forks sees that this one holds a lock, or this one sees that the other forks: both orders are sequential.
void detail::begin_lock() {
  if (t_depth++ > 0) return;
  std::atomic<int>& count = holders().count;
  count.fetch_add(1);
  while (g_forking.load()) [[unlikely]] {
    count.fetch_sub(1);
    g_forking.wait(true);
    count.fetch_add(1);
  }
}

void detail::end_lock() {
  if (--t_depth == 0) t_holders->count.fetch_sub(1, std::memory_order_release);
}

uint64_t forks() { return g_forks.load(); }

int held_locks() { return t_depth; }

// The holder is counted for both, so that this thread's count stays as it is.
WorkForHolder::WorkForHolder(bool holds) : holds_(holds) { t_depth += holds_; }
WorkForHolder::~WorkForHolder() { t_depth -= holds_; }

}  // namespace brasa
