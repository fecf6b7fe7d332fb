#pragma once

#include <forward_list>
#include <functional>
#include <vector>

#include "ops/table.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"

namespace brasa::pack {

/// A row's sample as a call takes it. What the arguments point to lives as long as this.
class SampleCall {
 public:
  using MakeTensor = std::function<Tensor(const ops::TensorSample&)>;
  /// Arguments by position, as in ops::Sample; `make` is asked for the tensors in order.
  SampleCall(const ops::Row& row, const std::vector<ops::SampleArg>& args, const MakeTensor& make);
  SampleCall(const SampleCall&) = delete;
  SampleCall& operator=(const SampleCall&) = delete;
  const std::vector<CallArg>& args() const { return args_; }

 private:
  void add_literal(const ir::Arg& literal, const ir::Param& param);
  void add_list(std::vector<Tensor> tensors, const ir::Param& param);

  std::vector<CallArg> args_;
  std::forward_list<std::vector<Tensor>> tensors_;
  std::forward_list<std::vector<std::optional<Tensor>>> optionals_;
  eager::Literals literals_;
};

/// Elements between the sample's bounds, made without a kernel.
Tensor tensor_of(const ops::TensorSample& s);
/// Calls the row with such tensors; with `gradients` floating ones ask for one.
eager::Results run(const ops::Row& row, const ops::Sample& sample, bool gradients);

}  // namespace brasa::pack
