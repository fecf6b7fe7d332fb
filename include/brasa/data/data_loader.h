#pragma once

#include <chrono>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

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

/// Goes over the batches of one pass.
template <class Loader>
class Iterator {
 public:
  using difference_type = std::ptrdiff_t;
  using value_type = typename Loader::BatchType;
  using pointer = value_type*;
  using reference = value_type&;
  using iterator_category = std::input_iterator_tag;

  Iterator() = default;
  explicit Iterator(Loader* loader) : loader_(loader) { ++*this; }
  Iterator& operator++() {
    batch_ = loader_->next();
    if (!batch_) loader_ = nullptr;
    return *this;
  }
  reference operator*() const { return *batch_; }
  pointer operator->() const { return &*batch_; }
  bool operator==(const Iterator& o) const { return loader_ == o.loader_; }

 private:
  Loader* loader_ = nullptr;
  mutable std::optional<value_type> batch_;
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
        options_(std::move(options)),
        jobs_(options_.max_jobs().value_or(options_.workers() * 2)),
        prefetcher_(options_.workers(), options_.enforce_ordering()) {
    if (options_.batch_size() == 0) throw Error("DataLoader: the batch size must be positive");
    if (options_.workers() > 0 && jobs_ == 0)
      throw Error("DataLoader: max_jobs must be positive when there are workers");
  }
  ~DataLoader() { prefetcher_.join(); }

  /// Begins a pass. brasa::Error while the one before has not come to its end.
  Iterator<DataLoader> begin() {
    if (prefetcher_.in_flight() > 0)
      throw Error("DataLoader: attempted to get a new iterator while another one is not yet exhausted");
    sampler_.reset();
    if constexpr (is_stateful) dataset_.reset();
    exhausted_ = false;
    prefetcher_.restart();
    for (size_t i = 0; i < jobs_ && push(); ++i) {
    }
    return Iterator<DataLoader>(this);
  }
  Iterator<DataLoader> end() { return {}; }

  /// Waits for the workers and ends them; no pass can be made afterwards.
  void join() { prefetcher_.join(); }
  const DataLoaderOptions& options() const noexcept { return options_; }

  /// The next batch of this pass, nullopt at its end. What a worker threw is thrown here.
  std::optional<BatchType> next() {
    if (options_.workers() == 0) {
      if (exhausted_) return std::nullopt;
      auto request = request_next();
      return request ? fetch(std::move(*request)) : std::nullopt;
    }
    while (prefetcher_.in_flight() > 0) {
      std::optional<BatchType> batch = prefetcher_.pop(options_.timeout());
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
    auto request = sampler_.next(options_.batch_size());
    if (!request) return request;
    if constexpr (requires { request->size(); })
      if (options_.drop_last() && request->size() < options_.batch_size()) request.reset();
    return request;
  }
  std::optional<BatchType> fetch(BatchRequestType request) { return dataset_.get_batch(std::move(request)); }
  bool push() {
    if (exhausted_) return false;
    auto request = request_next();
    if (!request) return false;
    prefetcher_.push([this, request = std::move(*request)]() mutable { return fetch(std::move(request)); });
    return true;
  }

  DatasetT dataset_;
  SamplerT sampler_;
  DataLoaderOptions options_;
  size_t jobs_;
  bool exhausted_ = false;
  Prefetcher<std::optional<BatchType>> prefetcher_;
};

/// A loader with a sampler of its own kind: `make_data_loader<samplers::SequentialSampler>(dataset, 64)`; random by default.
template <class SamplerT = samplers::RandomSampler, class DatasetT>
  requires(!DatasetT::is_stateful && std::is_constructible_v<SamplerT, size_t>)
std::unique_ptr<DataLoader<DatasetT, SamplerT>> make_data_loader(DatasetT dataset, DataLoaderOptions options = {}) {
  std::optional<size_t> size = dataset.size();
  if (!size) throw Error("make_data_loader: the dataset does not know its size, so the sampler must be given");
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
