#pragma once

#include <vector>

#include <brasa/tensor.h>

#include "ops/table.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"

namespace brasa::pack {

/// Elements between the sample's bounds, made without a kernel.
Tensor tensor_of(const ops::TensorSample& s);

/// A row's sample as a call that dispatch takes.
class SampleCall {
 public:
  SampleCall(const ops::Row& row, const ops::Sample& sample, bool gradients);
  eager::Results run();

 private:
  eager::Operator& op_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<Tensor>> lists_;
  std::vector<std::vector<std::optional<Tensor>>> optionals_;
  std::vector<Scalar> scalars_;
  eager::Literals literals_;
  std::vector<CallArg> args_;
};

}  // namespace brasa::pack
