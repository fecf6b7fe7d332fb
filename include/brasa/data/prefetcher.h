#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <brasa/error.h>

namespace brasa::data {

/// What a worker thread threw.
struct BRASA_API WorkerException : std::exception {
  explicit WorkerException(std::exception_ptr original);
  ~WorkerException() override;
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

/// Runs jobs on threads of its own and hands their results out in the order of the jobs, or as they get ready. A job's exception is
/// thrown where its result would have been, as a WorkerException.
template <class Result>
class Prefetcher {
 public:
  /// Gets the number of the thread that runs it.
  using Job = std::function<Result(size_t)>;

  Prefetcher(size_t workers, bool ordered) : ordered_(ordered) {
    for (size_t i = 0; i < workers; ++i) threads_.emplace_back([this, i] { work(i); });
  }
  ~Prefetcher() { join(); }
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  /// Jobs whose result has not been popped.
  size_t in_flight() const { return pushed_ - popped_; }

  void restart() {
    if (joined_) throw Error("DataLoader: it has been joined and cannot be used again");
    std::lock_guard lock(mutex_);
    pushed_ = popped_ = 0;
  }

  void push(Job job) {
    {
      std::lock_guard lock(mutex_);
      jobs_.emplace_back(pushed_++, std::move(job));
    }
    job_added_.notify_one();
  }

  Result pop(std::optional<std::chrono::milliseconds> timeout) {
    std::unique_lock lock(mutex_);
    auto ready = [&] { return !results_.empty() && (!ordered_ || results_.begin()->first == popped_); };
    if (!timeout)
      result_added_.wait(lock, ready);
    else if (!result_added_.wait_for(lock, *timeout, ready))
      throw Error("Timeout in DataLoader queue while waiting for next batch (timeout was " +
                  std::to_string(timeout->count()) + " ms)");
    Outcome outcome = std::move(results_.begin()->second);
    results_.erase(results_.begin());
    ++popped_;
    if (outcome.error) throw WorkerException(outcome.error);
    return std::move(*outcome.result);
  }

  /// Lets the running jobs end, drops the others, ends the threads.
  void join() {
    {
      std::lock_guard lock(mutex_);
      if (joined_) return;
      joined_ = true;
      jobs_.clear();
    }
    job_added_.notify_all();
    for (std::thread& t : threads_) t.join();
    pushed_ = popped_ = 0;
    results_.clear();
  }

 private:
  struct Outcome {
    std::optional<Result> result;
    std::exception_ptr error;
  };

  void work(size_t worker) {
    for (;;) {
      std::unique_lock lock(mutex_);
      job_added_.wait(lock, [&] { return joined_ || !jobs_.empty(); });
      if (joined_) return;
      auto [number, job] = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      Outcome outcome;
      try {
        outcome.result.emplace(job(worker));
      } catch (...) {
        outcome.error = std::current_exception();
      }
      job = nullptr;
      lock.lock();
      results_.emplace(number, std::move(outcome));
      result_added_.notify_one();
    }
  }

  const bool ordered_;
  std::mutex mutex_;
  std::condition_variable job_added_, result_added_;
  std::deque<std::pair<size_t, Job>> jobs_;
  std::map<size_t, Outcome> results_;
  size_t pushed_ = 0, popped_ = 0;
  bool joined_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace brasa::data
