#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include <brasa/arg.h>
#include <brasa/data/datasets.h>
#include <brasa/data/prefetcher.h>
#include <brasa/data/samplers.h>

namespace brasa::data::datasets {

/// Reads a dataset that lies in chunks, such as files; read_chunk is called from several threads at once.
template <class SingleExample, class Chunk = std::vector<SingleExample>>
class ChunkDataReader {
 public:
  using ChunkType = Chunk;
  using ExampleType = SingleExample;
  virtual ~ChunkDataReader() = default;
  virtual ChunkType read_chunk(size_t chunk_index) = 0;
  virtual size_t chunk_count() = 0;
  /// Begins anew.
  virtual void reset() = 0;
};

struct ChunkDatasetOptions {
  ChunkDatasetOptions(size_t preloader_count, size_t batch_size, size_t cache_size = 2048,
                      size_t cross_chunk_shuffle_count = 1)
      : preloader_count_(preloader_count),
        batch_size_(batch_size),
        cache_size_(cache_size),
        cross_chunk_shuffle_count_(cross_chunk_shuffle_count) {
    if (preloader_count == 0) throw Error("Preloader count is 0. At least one preloader needs to be specified.");
    if (batch_size == 0) throw Error("Batch size is 0. A positive batch size needs to be specified.");
    if (cache_size == 0) throw Error("Cache size is 0. A positive cache size needs to be specified.");
    if (cache_size < batch_size)
      throw Error("Cache size is less than batch size. Cache needs to be large enough to hold at least one batch.");
    if (cross_chunk_shuffle_count == 0) throw Error("cross_chunk_shuffle_count needs to be greater than 0.");
  }
  /// Threads that read chunks ahead.
  BRASA_ARG(size_t, preloader_count);
  BRASA_ARG(size_t, batch_size);
  /// No chunk is asked for while so many examples wait.
  BRASA_ARG(size_t, cache_size);
  /// Chunks whose examples are shuffled together.
  BRASA_ARG(size_t, cross_chunk_shuffle_count);
};

/// Batches of a chunked dataset: chunks in the order of one sampler, the examples within them in that of another.
template <class ChunkReader, class ChunkSampler = samplers::RandomSampler,
          class ExampleSampler = samplers::RandomSampler>
class ChunkDataset final : public StatefulDataset<ChunkDataset<ChunkReader, ChunkSampler, ExampleSampler>,
                                                  typename ChunkReader::ChunkType, size_t> {
 public:
  using BatchType = std::optional<typename ChunkReader::ChunkType>;
  using BatchRequestType = size_t;
  using ChunkSamplerType = ChunkSampler;
  using ExampleSamplerType = ExampleSampler;

  ChunkDataset(ChunkReader reader, ChunkSampler chunk_sampler, ExampleSampler example_sampler,
               ChunkDatasetOptions options,
               std::function<void(typename ChunkReader::ChunkType&)> preprocessing_policy = {})
      : reader_(std::move(reader)),
        chunk_sampler_(std::move(chunk_sampler)),
        example_sampler_(std::move(example_sampler)),
        options_(std::move(options)),
        preprocess_(std::move(preprocessing_policy)) {}

  /// The next examples, batch_size of them but for the last; nullopt at the end.
  BatchType get_batch(size_t batch_size) override {
    std::lock_guard lock(mutex_);
    if (!preloader_) throw Error("Dataset needs to call reset() before calling get_batch().");
    if (batch_size != options_.batch_size())
      throw Error(
          "The requested batch size does not match with the initialized batch size.\n The requested batch size is " +
          std::to_string(batch_size) + ", while the dataset is created with batch size equal to " +
          std::to_string(options_.batch_size()));
    while (waiting_.size() < batch_size && preloader_->in_flight() > 0) take(preloader_->pop(std::nullopt));
    if (waiting_.empty()) return std::nullopt;
    typename ChunkReader::ChunkType batch;
    for (; batch.size() < batch_size && !waiting_.empty(); waiting_.pop_front())
      batch.push_back(std::move(waiting_.front()));
    request();
    return batch;
  }
  BatchType get_batch() { return get_batch(options_.batch_size()); }

  void reset() override {
    std::lock_guard lock(mutex_);
    preloader_.reset();
    reader_.reset();
    waiting_.clear();
    ended_ = false;
    // A sampler that was loaded goes on where it was saved.
    if (!loaded_) chunk_sampler_.reset(reader_.chunk_count());
    loaded_ = false;
    preloader_ = std::make_unique<Prefetcher<typename ChunkReader::ChunkType>>(options_.preloader_count(), true);
    request();
  }
  std::optional<size_t> size() const override { return std::nullopt; }
  ChunkSampler& chunk_sampler() { return chunk_sampler_; }

  void save(serialize::OutputArchive& archive) const override {
    std::lock_guard lock(mutex_);
    chunk_sampler_.save(archive);
  }
  void load(serialize::InputArchive& archive) override {
    std::lock_guard lock(mutex_);
    chunk_sampler_.load(archive);
    loaded_ = true;
  }

 private:
  void request() {
    while (!ended_ && preloader_->in_flight() < options_.preloader_count() && waiting_.size() < options_.cache_size()) {
      auto chunks = chunk_sampler_.next(options_.cross_chunk_shuffle_count());
      if (!chunks || chunks->empty()) {
        ended_ = true;
        break;
      }
      preloader_->push([this, indices = *chunks](size_t) {
        typename ChunkReader::ChunkType all;
        for (size_t i : indices) {
          auto chunk = reader_.read_chunk(i);
          std::move(chunk.begin(), chunk.end(), std::back_inserter(all));
        }
        return all;
      });
    }
  }
  void take(typename ChunkReader::ChunkType chunk) {
    if (preprocess_) preprocess_(chunk);
    if (!chunk.empty()) {
      example_sampler_.reset(chunk.size());
      auto order = example_sampler_.next(chunk.size());
      for (size_t i : *order) waiting_.push_back(std::move(chunk[i]));
    }
    request();
  }

  ChunkReader reader_;
  ChunkSampler chunk_sampler_;
  ExampleSampler example_sampler_;
  ChunkDatasetOptions options_;
  std::function<void(typename ChunkReader::ChunkType&)> preprocess_;
  std::deque<typename ChunkReader::ExampleType> waiting_;
  bool ended_ = false, loaded_ = false;
  mutable std::mutex mutex_;
  std::unique_ptr<Prefetcher<typename ChunkReader::ChunkType>> preloader_;
};

}  // namespace brasa::data::datasets
