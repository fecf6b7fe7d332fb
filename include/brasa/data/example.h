#pragma once

#include <utility>

#include <brasa/tensor.h>

namespace brasa::data {

namespace example {
struct NoTarget {};
}  // namespace example

/// One item of a dataset, or a batch of them: data and what is to be learnt from it.
template <class Data = Tensor, class Target = Tensor>
struct Example {
  using DataType = Data;
  using TargetType = Target;
  Example() = default;
  Example(Data data, Target target) : data(std::move(data)), target(std::move(target)) {}
  Data data;
  Target target;
};

template <class Data>
struct Example<Data, example::NoTarget> {
  using DataType = Data;
  using TargetType = example::NoTarget;
  Example() = default;
  Example(Data data) : data(std::move(data)) {}  // NOLINT
  operator Data&() { return data; }              // NOLINT
  operator const Data&() const { return data; }  // NOLINT
  Data data;
};

using TensorExample = Example<Tensor, example::NoTarget>;

}  // namespace brasa::data
