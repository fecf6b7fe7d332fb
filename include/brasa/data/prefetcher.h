#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <brasa/data/channel.h>

namespace brasa::data {

/// What a worker thread threw.
struct BRASA_API WorkerException : std::exception {
  explicit WorkerException(std::exception_ptr original);
  ~WorkerException() override;
  const char* what() const noexcept override { return message.c_str(); }
  std::string message;
  std::exception_ptr original_exception;
};

namespace detail {

/// A Prefetcher whose results are of a type that it does not know.
class BRASA_API Workers {
 public:
  using Job = std::function<std::shared_ptr<void>(size_t)>;
  Workers(size_t count, bool ordered);
  ~Workers();
  size_t in_flight() const;
  void restart();
  void push(Job job);
  std::shared_ptr<void> pop(std::optional<std::chrono::milliseconds> timeout);
  void join();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace detail

/// Runs jobs on threads of its own and hands their results out in the order of the jobs, or as they get ready. A job's exception is
/// thrown where its result would have been, as a WorkerException. One thread at a time may call it.
template <class Result>
class Prefetcher {
 public:
  Prefetcher(size_t workers, bool ordered) : workers_(workers, ordered) {}

  /// Jobs whose result has not been popped.
  size_t in_flight() const { return workers_.in_flight(); }
  /// Counts jobs anew; brasa::Error after join().
  void restart() { workers_.restart(); }
  /// `job` gets the number of the thread that runs it.
  template <class Job>
  void push(Job job) {
    workers_.push([job = std::move(job)](size_t worker) mutable { return std::make_shared<Result>(job(worker)); });
  }
  /// Waits for a result, at most for `timeout`, then brasa::Error.
  Result pop(std::optional<std::chrono::milliseconds> timeout) {
    return std::move(*std::static_pointer_cast<Result>(workers_.pop(timeout)));
  }
  /// Lets the running jobs end, drops the others, ends the threads.
  void join() { workers_.join(); }

 private:
  detail::Workers workers_;
};

}  // namespace brasa::data
