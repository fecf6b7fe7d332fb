#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <brasa/data/channel.h>

// What LibTorch's loaders are made of, for programs with loaders of their own.
namespace brasa::data::detail {

/// Values from one thread to another.
template <class T>
class Queue {
 public:
  void push(T value) { channel_.push(std::make_shared<T>(std::move(value))); }
  /// Waits for a value, at most for `timeout`, then brasa::Error.
  T pop(std::optional<std::chrono::milliseconds> timeout = {}) {
    return std::move(*std::static_pointer_cast<T>(channel_.pop(timeout)));
  }
  /// How many there were.
  size_t clear() { return channel_.clear(); }

 private:
  Channel channel_;
};

/// Jobs to workers, results back.
template <class Job, class Result>
class DataShuttle {
 public:
  void push_job(Job job) {
    jobs_.push(std::move(job));
    ++in_flight_;
  }
  void push_result(Result result) { results_.push(std::move(result)); }
  Job pop_job() { return jobs_.pop(); }
  /// nullopt if no job is under way.
  std::optional<Result> pop_result(std::optional<std::chrono::milliseconds> timeout = {}) {
    if (in_flight_ == 0) return std::nullopt;
    std::optional<Result> result = results_.pop(timeout);
    --in_flight_;
    return result;
  }
  /// Drops jobs that no worker has begun, and waits for the others.
  void drain() {
    in_flight_ -= jobs_.clear();
    while (in_flight_ > 0) pop_result();
  }
  size_t in_flight_jobs() const { return in_flight_; }

 private:
  Queue<Job> jobs_;
  Queue<Result> results_;
  size_t in_flight_ = 0;
};

namespace sequencers {

template <class Result>
struct NoSequencer {
  template <class Getter>
  std::optional<Result> next(Getter get) {
    return get();
  }
};

/// Results in the order of their sequence_number.
template <class Result>
struct OrderedSequencer {
  explicit OrderedSequencer(size_t max_jobs) : buffer_(max_jobs) {}
  template <class Getter>
  std::optional<Result> next(Getter get) {
    if (std::optional<Result>& kept = slot(next_sequence_number_)) {
      std::optional<Result> result = std::move(kept);
      kept.reset();
      ++next_sequence_number_;
      return result;
    }
    while (std::optional<Result> result = get()) {
      if (result->sequence_number == next_sequence_number_) {
        ++next_sequence_number_;
        return result;
      }
      slot(result->sequence_number) = std::move(result);
    }
    return std::nullopt;
  }
  std::optional<Result>& slot(size_t number) { return buffer_[number % buffer_.size()]; }
  size_t next_sequence_number_ = 0;
  std::vector<std::optional<Result>> buffer_;
};

}  // namespace sequencers
}  // namespace brasa::data::detail
