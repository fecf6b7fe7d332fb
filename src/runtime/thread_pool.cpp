#include "runtime/thread_pool.h"

#include <brasa/warning.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <climits>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "support/error.h"
#include "support/fork.h"
#include "support/mutex.h"
#include "support/settings.h"

namespace brasa::runtime {
namespace {

thread_local bool t_in_parallel = false;

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// About 30 µs on current CPUs: longer than the gap between two kernels of a step, shorter than a scheduler's tick.
constexpr int kSpins = 2000;

constexpr int kMostThreads = 4096;

// Each participant owns a contiguous part, so that it touches the same memory in successive kernels; who is done
// early takes pieces of the others' parts.
struct alignas(64) Part {
  std::atomic<int64_t> next;
  int64_t end;
};

class Pool {
 public:
  // From the next job on. Workers that are too many leave.
  void resize(int threads) {
    {
      std::lock_guard lock(workers_);
      wanted_.store(threads, std::memory_order_relaxed);
      if (started_ <= threads) return;
      started_ = threads;
    }
    generation_.fetch_add(1, std::memory_order_seq_cst);
    futex_wake(generation_, INT_MAX);
  }

  // False if another thread is using the pool.
  bool run(int64_t n, int64_t grain, RangeBody body, void* context) {
    if (!owner_.try_lock()) return false;
    std::lock_guard lock(owner_, std::adopt_lock);
    if (asked_ != wanted_.load(std::memory_order_relaxed)) [[unlikely]]
      start_workers();
    int64_t pieces = (n + grain - 1) / grain;
    participants_ = static_cast<int>(std::min<int64_t>(threads_, pieces));
    grain_ = grain;
    body_ = body;
    context_ = context;
    owner_holds_locks_ = held_locks() > 0;
    int64_t share = (pieces + participants_ - 1) / participants_ * grain;
    for (int i = 0; i < participants_; ++i) {
      parts_[i].next.store(std::min(n, share * i), std::memory_order_relaxed);
      parts_[i].end = std::min(n, share * (i + 1));
    }
    error_taken_.store(false, std::memory_order_relaxed);
    error_ = nullptr;

    uint32_t job = ++jobs_;
    state_.store(uint64_t{job} << 32, std::memory_order_release);
    generation_.fetch_add(1, std::memory_order_seq_cst);
    if (sleepers_.load(std::memory_order_seq_cst) > 0) futex_wake(generation_, INT_MAX);

    t_in_parallel = true;
    take_pieces(0);
    t_in_parallel = false;

    // Closing keeps out workers that have not woken up yet: the work is done without them.
    uint64_t state = state_.fetch_or(kClosed, std::memory_order_acq_rel);
    for (int spins = 0; (state & kActive) != 0; state = state_.load(std::memory_order_acquire)) {
      if (++spins < kSpins)
        relax();
      else
        std::this_thread::yield();
    }
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
    return true;
  }

 private:
  static constexpr uint64_t kClosed = uint64_t{1} << 31, kActive = kClosed - 1;

  void start_workers() {
    std::lock_guard lock(workers_);
    asked_ = wanted_.load(std::memory_order_relaxed);
    for (threads_ = 1; threads_ < asked_; ++threads_) {
      if (present_[threads_]) continue;
      try {
        std::thread([this, id = threads_] { work(id); }).detach();
      } catch (const std::system_error& e) {
        static std::atomic<bool> said{false};
        if (!said.exchange(true))
          Warning::warn({__func__, __FILE__, __LINE__},
                        str("the system gives ", threads_, " threads where ", asked_, " were asked for: ", e.what()),
                        true);
        break;
      }
      present_[threads_] = true;
    }
    started_ = std::max(started_, threads_);
  }

  bool may_leave(int id) {
    if (id < wanted_.load(std::memory_order_relaxed)) return false;
    std::lock_guard lock(workers_);
    if (id < wanted_.load(std::memory_order_relaxed)) return false;
    present_[id] = false;
    return true;
  }

  void work(int id) {
    t_in_parallel = true;
    uint32_t seen = 0;
    while (!may_leave(id)) {
      uint32_t generation = generation_.load(std::memory_order_acquire);
      if (generation == seen) {
        wait(seen);
        continue;
      }
      seen = generation;
      if (join(id)) {
        {
          WorkForHolder as_the_owner(owner_holds_locks_);
          take_pieces(id);
        }
        state_.fetch_sub(1, std::memory_order_release);
      }
    }
  }

  void wait(uint32_t seen) {
    for (int i = 0; i < kSpins; ++i) {
      if (generation_.load(std::memory_order_acquire) != seen) return;
      relax();
    }
    sleepers_.fetch_add(1, std::memory_order_seq_cst);
    if (generation_.load(std::memory_order_seq_cst) == seen) futex_wait(generation_, seen);
    sleepers_.fetch_sub(1, std::memory_order_relaxed);
  }

  // The job's fields may only be read while this thread is counted in as active.
  bool join(int id) {
    uint64_t state = state_.load(std::memory_order_acquire);
    do {
      if (state & kClosed) return false;
    } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acq_rel));
    if (id < participants_) return true;
    state_.fetch_sub(1, std::memory_order_release);
    return false;
  }

  void take_pieces(int id) {
    for (int i = 0; i < participants_; ++i) {
      Part& part = parts_[(id + i) % participants_];
      while (true) {
        int64_t begin = part.next.load(std::memory_order_relaxed);
        if (begin >= part.end) break;
        // Half of what is left: few pieces, and a short wait for the last one.
        int64_t grains = (part.end - begin + grain_ - 1) / grain_,
                end = std::min(part.end, begin + (grains + 1) / 2 * grain_);
        if (!part.next.compare_exchange_weak(begin, end, std::memory_order_relaxed)) continue;
        try {
          body_(context_, begin, end);
        } catch (...) {
          if (!error_taken_.exchange(true)) error_ = std::current_exception();
          for (int p = 0; p < participants_; ++p) parts_[p].next.store(INT64_MAX / 2, std::memory_order_relaxed);
          return;
        }
      }
    }
  }

  std::mutex owner_;
  std::atomic<uint64_t> state_{kClosed};  // job << 32 | closed << 31 | active workers
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> error_taken_{false};
  std::exception_ptr error_;
  Part parts_[kMostThreads];
  RangeBody body_ = nullptr;
  void* context_ = nullptr;
  bool owner_holds_locks_ = false;
  int64_t grain_ = 1;
  uint32_t jobs_ = 0;
  int participants_ = 0;
  int asked_ = 0, threads_ = 1;  // how many threads the owner wanted, and got

  std::mutex workers_;  // the following
  std::atomic<int> wanted_{get_num_threads()};
  int started_ = 1;
  std::bitset<kMostThreads> present_;
};

int default_threads() {
  if (const char* text = environment("BRASA_NUM_THREADS")) {
    char* end = nullptr;
    long n = std::strtol(text, &end, 10);
    BRASA_CHECK(*text != 0 && *end == 0 && n >= 1 && n <= kMostThreads,
                "BRASA_NUM_THREADS must be a number of threads from 1 to ", kMostThreads, ", got '", text, "'");
    return static_cast<int>(n);
  }
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(1, CPU_COUNT(&set));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

std::atomic<int> g_threads{0};
std::atomic<Pool*> g_pool{nullptr};

const OnFork kOnFork(nullptr, nullptr, [] { g_pool.store(nullptr); });

// It lives for ever: static destructors of a program may still compute. A forked process has no workers, whatever its copy says, and makes
// a pool of its own.
Pool& pool() {
  Pool* p = g_pool.load(std::memory_order_acquire);
  if (p) [[likely]]
    return *p;
  auto made = std::make_unique<Pool>();
  if (g_pool.compare_exchange_strong(p, made.get())) p = made.release();
  p->resize(get_num_threads());  // it may have changed meanwhile
  return *p;
}

}  // namespace

void parallel_for(int64_t n, int64_t grain, RangeBody body, void* context) {
  if (n <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (n <= grain || t_in_parallel || get_num_threads() == 1 || !pool().run(n, grain, body, context))
    body(context, 0, n);
}

}  // namespace brasa::runtime

namespace brasa {

// The caller included: BRASA_NUM_THREADS, or the CPUs that this process may use.
int get_num_threads() {
  int n = runtime::g_threads.load(std::memory_order_relaxed);
  if (n == 0) {
    n = runtime::default_threads();
    int expected = 0;
    if (!runtime::g_threads.compare_exchange_strong(expected, n)) n = expected;
  }
  return n;
}

// Takes effect at the next parallel_for.
void set_num_threads(int n) {
  BRASA_CHECK(n >= 1 && n <= runtime::kMostThreads, "set_num_threads: the number of threads must be from 1 to ",
              runtime::kMostThreads, ", got ", n);
  BRASA_CHECK(!runtime::t_in_parallel, "set_num_threads: called from inside a parallel region");
  runtime::g_threads.store(n);
  if (runtime::Pool* p = runtime::g_pool.load(std::memory_order_acquire)) p->resize(n);
}

void parallel_for(int64_t begin, int64_t end, int64_t grain_size, const std::function<void(int64_t, int64_t)>& body) {
  BRASA_CHECK(grain_size >= 0, "parallel_for: grain_size must not be negative, but is ", grain_size);
  runtime::parallel_for(end - begin, grain_size, [&](int64_t from, int64_t to) { body(begin + from, begin + to); });
}
bool in_parallel_region() { return runtime::t_in_parallel; }

}  // namespace brasa
