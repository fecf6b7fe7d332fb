#pragma once

#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <brasa/array_ref.h>
#include <brasa/data/example.h>
#include <brasa/ops_generated.h>
#include <brasa/serialize/archive.h>

namespace brasa::data::datasets {

template <class S, class T>
class MapDataset;
template <class S, class T>
MapDataset<S, T> map(S dataset, T transform);

/// Gives batches for requests, as a rule lists of indices. Used from several threads at once, so get_batch must allow that.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = ArrayRef<size_t>>
class BatchDataset {
 public:
  using SelfType = Self;
  using BatchType = Batch;
  using BatchRequestType = BatchRequest;
  static constexpr bool is_stateful = false;

  virtual ~BatchDataset() = default;
  virtual Batch get_batch(BatchRequest request) = 0;
  /// nullopt if it is not known.
  virtual std::optional<size_t> size() const = 0;

  /// A dataset whose batches go through `transform`.
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) & {
    return datasets::map(static_cast<Self&>(*this), std::move(transform));
  }
  template <class Transform>
  MapDataset<Self, Transform> map(Transform transform) && {
    return datasets::map(std::move(static_cast<Self&>(*this)), std::move(transform));
  }
};

/// A dataset of numbered examples: override get(index) and size().
template <class Self, class SingleExample = Example<>>
class Dataset : public BatchDataset<Self, std::vector<SingleExample>> {
 public:
  using ExampleType = SingleExample;
  virtual ExampleType get(size_t index) = 0;
  std::vector<ExampleType> get_batch(ArrayRef<size_t> indices) override {
    std::vector<ExampleType> batch;
    batch.reserve(indices.size());
    for (size_t i : indices) batch.push_back(get(i));
    return batch;
  }
};

/// A dataset that decides itself what comes next, such as a stream; get_batch(n) gives at most n examples, nullopt at the end.
template <class Self, class Batch = std::vector<Example<>>, class BatchRequest = size_t>
class StatefulDataset : public BatchDataset<Self, std::optional<Batch>, BatchRequest> {
 public:
  static constexpr bool is_stateful = true;
  /// Begins anew.
  virtual void reset() = 0;
  virtual void save(serialize::OutputArchive& archive) const = 0;
  virtual void load(serialize::InputArchive& archive) = 0;
};

template <class Self, class Batch, class BatchRequest>
serialize::OutputArchive& operator<<(serialize::OutputArchive& archive,
                                     const StatefulDataset<Self, Batch, BatchRequest>& dataset) {
  dataset.save(archive);
  return archive;
}
template <class Self, class Batch, class BatchRequest>
serialize::InputArchive& operator>>(serialize::InputArchive& archive,
                                    StatefulDataset<Self, Batch, BatchRequest>& dataset) {
  dataset.load(archive);
  return archive;
}

/// A dataset without indices: get_batch(n) gives n examples.
template <class Self, class Batch = std::vector<Example<>>>
using StreamDataset = BatchDataset<Self, Batch, size_t>;

/// The rows of one tensor, or tensors of equal sizes.
class BRASA_API TensorDataset : public Dataset<TensorDataset, TensorExample> {
 public:
  explicit TensorDataset(const std::vector<Tensor>& tensors);
  explicit TensorDataset(Tensor tensor);
  ~TensorDataset() override;
  TensorExample get(size_t index) override;
  std::optional<size_t> size() const override;

 private:
  Tensor tensor_;
};

namespace detail {
template <class T>
struct Unwrap {
  using type = T;
};
template <class T>
struct Unwrap<std::optional<T>> {
  using type = T;
};
}  // namespace detail

template <class SourceDataset, class AppliedTransform>
class MapDataset {
 public:
  using DatasetType = SourceDataset;
  using TransformType = AppliedTransform;
  using BatchRequestType = typename SourceDataset::BatchRequestType;
  using OutputBatchType = typename AppliedTransform::OutputBatchType;
  static constexpr bool is_stateful = SourceDataset::is_stateful;
  using BatchType = std::conditional_t<is_stateful, std::optional<OutputBatchType>, OutputBatchType>;

  MapDataset(SourceDataset dataset, AppliedTransform transform)
      : dataset_(std::move(dataset)), transform_(std::move(transform)) {}

  BatchType get_batch(BatchRequestType request) {
    if constexpr (is_stateful) {
      if (auto batch = dataset_.get_batch(std::move(request))) return transform_.apply_batch(std::move(*batch));
      return std::nullopt;
    } else {
      return transform_.apply_batch(dataset_.get_batch(std::move(request)));
    }
  }
  std::optional<size_t> size() const noexcept { return dataset_.size(); }
  void reset() { dataset_.reset(); }
  const SourceDataset& dataset() noexcept { return dataset_; }
  const AppliedTransform& transform() noexcept { return transform_; }
  template <class Transform>
  MapDataset<MapDataset, Transform> map(Transform transform) && {
    return datasets::map(std::move(*this), std::move(transform));
  }
  template <class Transform>
  MapDataset<MapDataset, Transform> map(Transform transform) & {
    return datasets::map(*this, std::move(transform));
  }

 private:
  SourceDataset dataset_;
  AppliedTransform transform_;
};

template <class S, class T>
MapDataset<S, T> map(S dataset, T transform) {
  static_assert(std::is_same_v<typename detail::Unwrap<typename S::BatchType>::type, typename T::InputBatchType>,
                "the transform takes another type of batch than the dataset gives");
  return {std::move(dataset), std::move(transform)};
}

/// One dataset for several loaders.
template <class UnderlyingDataset>
class SharedBatchDataset {
 public:
  using BatchType = typename UnderlyingDataset::BatchType;
  using BatchRequestType = typename UnderlyingDataset::BatchRequestType;
  static constexpr bool is_stateful = UnderlyingDataset::is_stateful;

  explicit SharedBatchDataset(std::shared_ptr<UnderlyingDataset> dataset) : dataset_(std::move(dataset)) {}
  BatchType get_batch(BatchRequestType request) { return dataset_->get_batch(std::move(request)); }
  std::optional<size_t> size() const { return dataset_->size(); }
  void reset() { dataset_->reset(); }
  template <class Transform>
  MapDataset<SharedBatchDataset, Transform> map(Transform transform) {
    return datasets::map(*this, std::move(transform));
  }
  UnderlyingDataset& operator*() { return *dataset_; }
  UnderlyingDataset* operator->() { return dataset_.get(); }

 private:
  std::shared_ptr<UnderlyingDataset> dataset_;
};

template <class UnderlyingDataset, class... Args>
SharedBatchDataset<UnderlyingDataset> make_shared_dataset(Args&&... args) {
  return SharedBatchDataset<UnderlyingDataset>(std::make_shared<UnderlyingDataset>(std::forward<Args>(args)...));
}

}  // namespace brasa::data::datasets
