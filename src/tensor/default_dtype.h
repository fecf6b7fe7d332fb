#pragma once

#include <vector>

#include <brasa/tensor.h>

#include "tensor/dispatch.h"

// Rows know float32 alone as what integers and numbers become. Where the program has set another default dtype, dispatch gives calls other
// arguments.
namespace brasa::eager {

/// A call's arguments under another default dtype than float32.
class DefaultDtypeCall {
 public:
  DefaultDtypeCall(Operator& op, CallArgs args, DType chosen);
  /// Whether they differ from those that were given.
  explicit operator bool() const { return changed_; }
  CallArgs args() const { return args_; }

 private:
  void give_dtype(Operator& op, DType chosen);
  void convert_operands(Operator& op, DType chosen);

  std::vector<CallArg> args_;
  std::vector<Tensor> converted_;
  bool changed_ = false;
};

}  // namespace brasa::eager
