#pragma once

#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/arg.h>
#include <brasa/data/prefetcher.h>
#include <brasa/data/samplers.h>
#include <brasa/error.h>

namespace brasa::data {

struct DataLoaderOptions {
  DataLoaderOptions() = default;
  DataLoaderOptions(size_t batch_size) : batch_size_(batch_size) {}  // NOLINT
  BRASA_ARG(size_t, batch_size) = 1;
  /// Threads that make batches; 0: the caller's own.
  BRASA_ARG(size_t, workers) = 0;
  /// Batches made ahead, at most; by default two a worker.
  BRASA_ARG(std::optional<size_t>, max_jobs);
  /// How long to wait for a batch before a brasa::Error.
  BRASA_ARG(std::optional<std::chrono::milliseconds>, timeout);
  /// Batches come in the sampler's order, not in that in which they are ready.
  BRASA_ARG(bool, enforce_ordering) = true;
  /// Leave out a last batch that is not full.
  BRASA_ARG(bool, drop_last) = false;
};

/// The options with everything settled.
struct FullDataLoaderOptions {
  explicit FullDataLoaderOptions(const DataLoaderOptions& o)
      : batch_size(o.batch_size()),
        workers(o.workers()),
        max_jobs(o.max_jobs().value_or(2 * o.workers())),
        timeout(o.timeout()),
        enforce_ordering(o.enforce_ordering()),
        drop_last(o.drop_last()) {}
  size_t batch_size, workers, max_jobs;
  std::optional<std::chrono::milliseconds> timeout;
  bool enforce_ordering, drop_last;
};

/// Goes over the batches of one pass, from when it is first asked. Copies go together.
template <class Loader>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = typename Loader::BatchType;
  using pointer = value_type*;
  using reference = value_type&;
  using iterator_category = std::input_iterator_tag;

  Iterator() = default;
  explicit Iterator(Loader* loader) : pass_(std::make_shared<Pass>(Pass{loader, {}, false})) {}
  // brasa::Error past the end.
  Iterator& operator++() {
    if (!pass_) throw Error("Incrementing the DataLoader's past-the-end iterator is not allowed");
    if (at_end()) throw Error("Attempted to increment iterator past the end");
    pass_->batch = pass_->loader->next();
    return *this;
  }
  reference operator*() const {
    if (!pass_) throw Error("Dereferencing the DataLoader's past-the-end iterator is not allowed");
    if (at_end()) throw Error("Attempted to dereference iterator that was past the end");
    return *pass_->batch;
  }
  pointer operator->() const { return &**this; }
  bool operator==(const Iterator& o) const { return pass_ == o.pass_ || (!pass_ ? o.at_end() : !o.pass_ && at_end()); }

 private:
  struct Pass {
    Loader* loader;
    std::optional<value_type> batch;
    bool begun;
  };
  bool at_end() const {
    if (!std::exchange(pass_->begun, true)) pass_->batch = pass_->loader->next();
    return !pass_->batch;
  }
  std::shared_ptr<Pass> pass_;
};

/// Batches of a dataset in the order of a sampler, made ahead of their use by worker threads. Each range-for is one pass.
template <class DatasetT, class SamplerT>
class DataLoader {
 public:
  using DatasetBatch = typename DatasetT::BatchType;
  static constexpr bool is_stateful = DatasetT::is_stateful;
  template <class B>
  struct Unwrapped {
    using type = B;
  };
  template <class B>
  struct Unwrapped<std::optional<B>> {
    using type = B;
  };
  using BatchType = typename Unwrapped<DatasetBatch>::type;
  using BatchRequestType = typename SamplerT::BatchRequestType;

  DataLoader(DatasetT dataset, SamplerT sampler, DataLoaderOptions options)
      : dataset_(std::move(dataset)),
        sampler_(std::move(sampler)),
        options_(options),
        prefetcher_(options_.workers, options_.enforce_ordering) {
    if (options_.batch_size == 0) throw Error("DataLoader: the batch size must be positive");
    if constexpr (!is_stateful && std::is_copy_constructible_v<DatasetT>) {
      copies_.reserve(options_.workers);
      for (size_t i = 0; i < options_.workers; ++i) copies_.push_back(dataset_);
    }
    if (options_.workers > 0 && options_.max_jobs == 0)
      throw Error("DataLoader: max_jobs must be positive when there are workers");
  }
  ~DataLoader() { prefetcher_.join(); }

  /// Begins a pass. brasa::Error while the one before has not come to its end.
  Iterator<DataLoader> begin() {
    if (prefetcher_.in_flight() > 0)
      throw Error("Attempted to get a new DataLoader iterator while another iterator is not yet exhausted");
    sampler_.reset();
    if constexpr (is_stateful) dataset_.reset();
    exhausted_ = false;
    prefetcher_.restart();
    for (size_t i = 0; i < options_.max_jobs && push(); ++i) {
    }
    return Iterator<DataLoader>(this);
  }
  Iterator<DataLoader> end() { return {}; }

  /// Waits for the workers and ends them; no pass can be made afterwards.
  void join() { prefetcher_.join(); }
  const FullDataLoaderOptions& options() const noexcept { return options_; }

  /// The next batch of this pass, nullopt at its end. What a worker threw is thrown here, as a WorkerException.
  std::optional<BatchType> next() {
    if (options_.workers == 0) {
      if (exhausted_) return std::nullopt;
      auto request = request_next();
      return request ? fetch(dataset_, std::move(*request)) : std::nullopt;
    }
    while (prefetcher_.in_flight() > 0) {
      std::optional<BatchType> batch = prefetcher_.pop(options_.timeout);
      if (!batch) {  // a stateful dataset's end
        exhausted_ = true;
        continue;
      }
      push();
      return batch;
    }
    return std::nullopt;
  }

 private:
  std::optional<BatchRequestType> request_next() {
    auto request = sampler_.next(options_.batch_size);
    if (!request) return request;
    if constexpr (requires { request->size(); })
      if (options_.drop_last && request->size() < options_.batch_size) request.reset();
    return request;
  }
  std::optional<BatchType> fetch(DatasetT& dataset, BatchRequestType request) {
    return dataset.get_batch(std::move(request));
  }
  bool push() {
    if (exhausted_) return false;
    auto request = request_next();
    if (!request) return false;
    prefetcher_.push([this, request = std::move(*request)](size_t worker) mutable {
      return fetch(copies_.empty() ? dataset_ : copies_[worker], std::move(request));
    });
    return true;
  }

  DatasetT dataset_;
  std::vector<DatasetT> copies_;  // one a worker, so that a dataset need not be safe to use from several threads
  SamplerT sampler_;
  FullDataLoaderOptions options_;
  bool exhausted_ = false;
  Prefetcher<std::optional<BatchType>> prefetcher_;
};

/// A loader with a sampler of its own kind: `make_data_loader<samplers::SequentialSampler>(dataset, 64)`; random by default.
template <class SamplerT = samplers::RandomSampler, class DatasetT>
  requires(!DatasetT::is_stateful && std::is_constructible_v<SamplerT, size_t>)
std::unique_ptr<DataLoader<DatasetT, SamplerT>> make_data_loader(DatasetT dataset, DataLoaderOptions options = {}) {
  std::optional<size_t> size = dataset.size();
  if (!size) throw Error("Expected the dataset to be sized in order to construct the Sampler");
  return std::make_unique<DataLoader<DatasetT, SamplerT>>(std::move(dataset), SamplerT(*size), std::move(options));
}
template <class DatasetT, class SamplerT>
  requires(requires { typename SamplerT::BatchRequestType; })
std::unique_ptr<DataLoader<DatasetT, SamplerT>> make_data_loader(DatasetT dataset, SamplerT sampler,
                                                                 DataLoaderOptions options = {}) {
  return std::make_unique<DataLoader<DatasetT, SamplerT>>(std::move(dataset), std::move(sampler), std::move(options));
}
/// For a dataset with a state of its own: no sampler, it is asked for batches until it has no more.
template <class DatasetT>
  requires(DatasetT::is_stateful)
auto make_data_loader(DatasetT dataset, DataLoaderOptions options = {}) {
  return std::make_unique<DataLoader<DatasetT, samplers::StreamSampler>>(
      std::move(dataset), samplers::StreamSampler(static_cast<size_t>(-1)), std::move(options));
}

}  // namespace brasa::data
