#pragma once

#include <functional>
#include <utility>
#include <vector>

#include <brasa/brasa.h>
#include <brasa/data/example.h>

namespace brasa::data::transforms {

/// Turns a whole batch into another.
template <class InputBatch, class OutputBatch>
class BatchTransform {
 public:
  using InputBatchType = InputBatch;
  using OutputBatchType = OutputBatch;
  virtual ~BatchTransform() = default;
  virtual OutputBatch apply_batch(InputBatch input_batch) = 0;
};

/// Turns each example into another.
template <class Input, class Output>
class Transform : public BatchTransform<std::vector<Input>, std::vector<Output>> {
 public:
  using InputType = Input;
  using OutputType = Output;
  virtual Output apply(Input input) = 0;
  std::vector<Output> apply_batch(std::vector<Input> input_batch) override {
    std::vector<Output> out;
    out.reserve(input_batch.size());
    for (Input& input : input_batch) out.push_back(apply(std::move(input)));
    return out;
  }
};

template <class Input, class Output = Input>
class Lambda : public Transform<Input, Output> {
 public:
  explicit Lambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply(Input input) override { return function_(std::move(input)); }

 private:
  std::function<Output(Input)> function_;
};

template <class Input, class Output = Input>
class BatchLambda : public BatchTransform<Input, Output> {
 public:
  explicit BatchLambda(std::function<Output(Input)> function) : function_(std::move(function)) {}
  Output apply_batch(Input input_batch) override { return function_(std::move(input_batch)); }

 private:
  std::function<Output(Input)> function_;
};

/// Changes the data and leaves the target.
template <class Target = Tensor>
class TensorTransform : public Transform<Example<Tensor, Target>, Example<Tensor, Target>> {
 public:
  using E = Example<Tensor, Target>;
  virtual Tensor operator()(Tensor input) = 0;
  E apply(E input) override {
    input.data = (*this)(std::move(input.data));
    return input;
  }
};

template <class Target = Tensor>
class TensorLambda : public TensorTransform<Target> {
 public:
  explicit TensorLambda(std::function<Tensor(Tensor)> function) : function_(std::move(function)) {}
  Tensor operator()(Tensor input) override { return function_(std::move(input)); }

 private:
  std::function<Tensor(Tensor)> function_;
};

/// (x - mean) / stddev, with one number or one a channel (the first dimension of an image of three).
template <class Target = Tensor>
class Normalize : public TensorTransform<Target> {
 public:
  Normalize(ArrayRef<double> mean, ArrayRef<double> stddev)
      : mean_(tensor(mean.vec(), kFloat32).view({static_cast<int64_t>(mean.size()), 1, 1})),
        stddev_(tensor(stddev.vec(), kFloat32).view({static_cast<int64_t>(stddev.size()), 1, 1})) {}
  Tensor operator()(Tensor input) override { return input.sub(mean_).div(stddev_); }

 private:
  Tensor mean_, stddev_;
};

template <class T, class BatchOfT = std::vector<T>>
using Collation = BatchTransform<BatchOfT, T>;
template <class T, class BatchOfT = std::vector<T>>
using Collate = BatchLambda<BatchOfT, T>;

/// Examples of equal sizes to one, along a new first dimension.
template <class T = Example<>>
class Stack;

template <>
class Stack<Example<>> : public Collation<Example<>> {
 public:
  Example<> apply_batch(std::vector<Example<>> examples) override {
    std::vector<Tensor> data, targets;
    data.reserve(examples.size());
    targets.reserve(examples.size());
    for (Example<>& e : examples) {
      data.push_back(std::move(e.data));
      targets.push_back(std::move(e.target));
    }
    return {stack(data), stack(targets)};
  }
};

template <>
class Stack<TensorExample> : public Collation<Example<Tensor, example::NoTarget>> {
 public:
  TensorExample apply_batch(std::vector<TensorExample> examples) override {
    std::vector<Tensor> data;
    data.reserve(examples.size());
    for (TensorExample& e : examples) data.push_back(std::move(e.data));
    return stack(data);
  }
};

}  // namespace brasa::data::transforms
