#include "compiler/kernels/optimizer.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <exception>
#include <map>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <brasa/threads.h>

#include "compiler/kernels/codegen_client.h"
#include "support/error.h"
#include "support/fork.h"
#include "support/lazy.h"
#include "support/log.h"
#include "support/mutex.h"

namespace brasa::compiler {

// It lives for ever, as its thread does, which sleeps where nothing is left. A process that forks waits until no thread compiles, so that no
// lock of the compiler's is held in the child, which has a thread of its own when it needs one.
class Optimizer {
 public:
  static Optimizer& get() { return *current(); }
  static void before_fork() { get().hold(); }
  static void in_parent() { get().go_on(); }
  static void in_child() { current() = new Optimizer(get()); }

  void now(BaselineKernels kernels) {
    std::unique_lock lock(mutex_);
    may_compile(lock);
    std::vector<std::shared_ptr<BaselineKernel>> taken;
    for (const auto& k : kernels)
      if (take(*k)) taken.push_back(k);
    std::exception_ptr internal = compile(taken, lock);
    changed_.wait(lock, [&] {
      return std::none_of(kernels.begin(), kernels.end(), [](const auto& k) { return k->state_ == State::Compiling; });
    });
    if (internal) std::rethrow_exception(internal);
  }

  void soon(BaselineKernels kernels, int64_t nanoseconds) {
    std::unique_lock lock(mutex_);
    if (stopped_) return;
    if (get_num_threads() > 1 && start(lock)) {
      for (const auto& k : kernels)
        if (k->state_ == State::Baseline && !k->failed()) {
          k->state_ = State::Queued;
          k->asked_.store(true, std::memory_order_relaxed);
          queue_.push_back(k);
        }
      work_.notify_one();
      return;
    }
    using Clock = std::chrono::steady_clock;
    Clock::time_point end = Clock::now() + std::chrono::nanoseconds(nanoseconds);
    for (const auto& k : kernels) {
      may_compile(lock);
      if (k->failed() || !take(*k)) continue;
      if (std::exception_ptr internal = compile({k}, lock)) std::rethrow_exception(internal);
      if (Clock::now() >= end) return;
    }
  }

  bool settled(BaselineKernels kernels) {
    std::lock_guard lock(mutex_);
    return std::all_of(kernels.begin(), kernels.end(), [&](const auto& k) {
      return k->state_ == State::Optimized || k->failed() || stopped_ || !optimizes_later();
    });
  }

  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return (queue_.empty() || !running_) && compiling_ == 0; });
  }

  int64_t nanoseconds() {
    std::lock_guard lock(mutex_);
    timespec t{};
    if (running_) clock_gettime(clock_, &t);
    return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
  }

 private:
  using State = BaselineKernel::State;

  Optimizer() = default;
  // In the child of a fork, whose other threads are gone: the mutex of the old one stays as it was left, and what was queued is due again.
  Optimizer(const Optimizer& old) : stopped_(old.stopped_) {
    for (const std::weak_ptr<BaselineKernel>& queued : old.queue_)
      if (auto k = queued.lock(); k && k->state_ == State::Queued) {
        k->state_ = State::Baseline;
        k->asked_ = false;
      }
  }

  static Optimizer*& current() {
    static constinit Lazy<Optimizer*> optimizer([] { return new Optimizer; });
    return *optimizer;
  }

  void hold() {
    std::unique_lock lock(mutex_);
    ++forks_;
    changed_.wait(lock, [&] { return compiling_ == 0; });
  }
  void go_on() {
    std::lock_guard lock(mutex_);
    --forks_;
    changed_.notify_all();
    work_.notify_all();
  }

  // A fork waits for a thread that holds another lock besides this one, so that such a thread does not wait for the fork.
  void may_compile(std::unique_lock<Mutex>& lock) {
    changed_.wait(lock, [&] { return forks_ == 0 || held_locks() > 1; });
  }

  static bool take(BaselineKernel& k) {
    if (k.state_ == State::Compiling || k.state_ == State::Optimized) return false;
    k.state_ = State::Compiling;
    return true;
  }

  // Kernels that are taken. The lock is open while it compiles. Gives errors that are the compiler's own.
  std::exception_ptr compile(const std::vector<std::shared_ptr<BaselineKernel>>& taken, std::unique_lock<Mutex>& lock) {
    if (taken.empty()) return nullptr;
    std::exception_ptr internal;
    std::map<std::pair<runtime::Device*, std::string>, std::vector<BaselineKernel*>> groups;
    for (const auto& k : taken) groups[{&k->device_, k->options_}].push_back(k.get());
    ++compiling_;
    for (const auto& [where, kernels] : groups) {
      lock.unlock();
      std::vector<std::string> texts;
      for (const BaselineKernel* k : kernels) texts.push_back(k->text_);
      std::vector<LoadedKernel> loaded;
      std::string error;
      try {
        loaded = load_kernels(texts, *where.first, where.second);
        note_optimized(static_cast<int64_t>(kernels.size()));
      } catch (const Error& e) {
        error = e.what();  // the program is exiting, or the code generator is gone: what there is does as well
      } catch (...) {
        error = "the code generator has a bug";
        internal = std::current_exception();
      }
      if (logs("cache"))
        log_line("cache", str(kernels.size(), " kernels that had baseline code ",
                              error.empty() ? "are optimized" : "cannot be optimized: " + error));
      lock.lock();
      for (size_t i = 0; i < kernels.size(); ++i)
        loaded.empty() ? fail(*kernels[i]) : publish(*kernels[i], std::move(loaded[i]));
    }
    --compiling_;
    changed_.notify_all();
    return internal;
  }

  static void publish(BaselineKernel& k, LoadedKernel loaded) {
    k.code_ = std::move(loaded.code);
    k.function_.store(loaded.function, std::memory_order_release);
    k.state_ = State::Optimized;
    k.optimized_.store(true, std::memory_order_release);
  }
  // It is tried again when it has run for longer than until now.
  static void fail(BaselineKernel& k) {
    k.state_ = State::Baseline;
    k.asked_ = false;
    k.ran_.store(-std::abs(k.ran_.load(std::memory_order_relaxed)) - 1, std::memory_order_relaxed);
  }

  // False where the system gives no thread.
  bool start(std::unique_lock<Mutex>& lock) {
    if (running_) return true;
    at_exit(lock);
    try {
      std::thread thread([this] { run(); });
      pthread_getcpuclockid(thread.native_handle(), &clock_);
      thread.detach();
    } catch (const std::system_error&) {
      return false;
    }
    return running_ = true;
  }

  // What is registered last runs first: before the destructors of what the compiler and LLVM use.
  void at_exit(std::unique_lock<Mutex>& lock) {
    lock.unlock();
    std::atexit([] { current()->stop(); });
    lock.lock();
  }
  void stop() {
    std::unique_lock lock(mutex_);
    stopped_ = true;
    queue_.clear();
    changed_.wait(lock, [&] { return !busy_; });
  }

  void run() {
    bool llvm = false;
    std::unique_lock lock(mutex_);
    while (true) {
      work_.wait(lock, [&] { return !queue_.empty() && forks_ == 0; });
      busy_ = true;
      ++compiling_;
      if (!llvm) {
        lock.unlock();
        llvm = has_codegen();
        lock.lock();
        if (llvm) at_exit(lock);
      }
      if (!queue_.empty()) {
        std::shared_ptr<BaselineKernel> k = queue_.front().lock();
        queue_.pop_front();
        if (k && k->state_ == State::Queued && take(*k)) compile({k}, lock);
        lock.unlock();
        k.reset();  // it may be the last one that holds its code
        lock.lock();
      }
      --compiling_;
      busy_ = false;
      changed_.notify_all();
    }
  }

  static bool has_codegen() {
    try {
      return !codegen_path().empty();
    } catch (const std::exception&) {
      return false;
    }
  }

  Mutex mutex_;
  std::condition_variable_any work_, changed_;
  std::deque<std::weak_ptr<BaselineKernel>> queue_;
  int compiling_ = 0, forks_ = 0;
  bool running_ = false, busy_ = false, stopped_ = false;
  clockid_t clock_{};
};

const OnFork kOnFork(Optimizer::before_fork, Optimizer::in_parent, Optimizer::in_child);

void optimize(BaselineKernels kernels) {
  if (optimizes_later()) Optimizer::get().now(kernels);
}
void optimize_soon(BaselineKernels kernels, int64_t nanoseconds) {
  if (optimizes_later()) Optimizer::get().soon(kernels, nanoseconds);
}
bool settled(BaselineKernels kernels) { return Optimizer::get().settled(kernels); }
void wait_for_optimizer() { Optimizer::get().wait(); }
int64_t optimizer_nanoseconds() { return Optimizer::get().nanoseconds(); }

}  // namespace brasa::compiler
