#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <brasa/serialize/archive.h>

namespace brasa::data::samplers {

/// Says which examples make the next batch.
template <class BatchRequest = std::vector<size_t>>
class Sampler {
 public:
  using BatchRequestType = BatchRequest;
  virtual ~Sampler() = default;
  /// Begins a new pass, over another number of examples if one is given.
  virtual void reset(std::optional<size_t> new_size) = 0;
  void reset() { reset(std::nullopt); }
  /// At most `batch_size` of them; nullopt at the end.
  virtual std::optional<BatchRequest> next(size_t batch_size) = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

/// 0, 1, 2, …
class BRASA_API SequentialSampler : public Sampler<> {
 public:
  explicit SequentialSampler(size_t size) : size_(size) {}
  using Sampler<>::reset;
  void reset(std::optional<size_t> new_size) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return index_; }

 private:
  size_t size_, index_ = 0;
};

/// Every index once a pass, in an order drawn from the default generator (see manual_seed).
class BRASA_API RandomSampler : public Sampler<> {
 public:
  explicit RandomSampler(size_t size);
  using Sampler<>::reset;
  void reset(std::optional<size_t> new_size) override;
  std::optional<std::vector<size_t>> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;
  size_t index() const noexcept { return index_; }

 private:
  std::vector<size_t> order_;
  size_t index_ = 0;
};

/// Batch sizes for a dataset that picks its examples itself.
class BRASA_API StreamSampler : public Sampler<size_t> {
 public:
  explicit StreamSampler(size_t epoch_size) : epoch_size_(epoch_size) {}
  using Sampler<size_t>::reset;
  void reset(std::optional<size_t> new_size) override;
  std::optional<size_t> next(size_t batch_size) override;
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  size_t epoch_size_, given_ = 0;
};

}  // namespace brasa::data::samplers
