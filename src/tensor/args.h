#pragma once

#include <forward_list>
#include <memory>
#include <string>
#include <vector>

#include <brasa/call.h>

#include "ops/table.h"

namespace brasa::eager {

bool is_number(const CallArg& a);
Scalar number_of(const CallArg& a);

/// Calls f for each tensor among the arguments, in order: undefined ones of a list too, of optional ones those that are there.
template <class F>
void each_tensor(ArrayRef<CallArg> args, F f) {
  for (const CallArg& a : args) {
    if (a.kind == CallArg::Kind::Tensor) f(*a.tensor);
    if (a.kind == CallArg::Kind::Tensors)
      for (uint32_t k = 0; k < a.size; ++k) f(a.tensor[k]);
    if (a.kind == CallArg::Kind::OptionalTensors)
      for (uint32_t k = 0; k < a.size; ++k)
        if (a.optional_tensor[k] && a.optional_tensor[k]->defined()) f(*a.optional_tensor[k]);
  }
}

/// "float32[2, 3]" behind what is there already; nothing of an undefined tensor.
void append_shape(std::string& shapes, const Tensor& t);

/// Copies of a call's arguments, which outlive the call.
class ArgStore {
 public:
  explicit ArgStore(ArrayRef<CallArg> args);
  ArgStore(const ArgStore&) = delete;
  ArgStore& operator=(const ArgStore&) = delete;
  ArrayRef<CallArg> args() const { return args_; }
  // The tensors in it, in order; writable, for snapshots.
  std::vector<Tensor>& tensors() { return tensors_; }
  std::vector<std::optional<Tensor>>& optional_tensors() { return optional_tensors_; }

 private:
  std::vector<CallArg> args_;
  std::vector<Tensor> tensors_;
  std::vector<std::optional<Tensor>> optional_tensors_;
  std::vector<std::shared_ptr<const void>> others_;
};

/// A node's literal arguments as a call has them. What they point to lives as long as this.
class Literals {
 public:
  CallArg of(const ir::Arg& arg, const ir::Param& param);
  /// For a parameter that the caller left out. brasa::Error where the schema has no default.
  CallArg default_of(const ir::Param& param, const ops::Row& row);
  /// Appends the defaults of the parameters that the arguments leave out, up to `count` arguments.
  void fill_up(std::vector<CallArg>& args, const ops::Row& row, size_t count);

 private:
  std::forward_list<std::vector<int64_t>> ints_;
  std::forward_list<std::vector<Scalar>> scalars_;
  std::forward_list<std::unique_ptr<bool[]>> bools_;
};

/// A literal argument as the IR has it, in the form that the parameter asks for; brasa::Error if it does not fit.
ir::Arg literal(const CallArg& arg, const ir::Param& param, const ops::Row& row);
ir::Arg literal(const Scalar& s);
/// Those of a call, for each parameter of the row; its tensors and generators are absent.
ir::Args literals(const ops::Row& row, ArrayRef<CallArg> args);
/// Whether that literal is `known`, found without making it; false also where that takes too long to say.
bool surely_equal(const CallArg& arg, const ir::Param& param, const ir::Arg& known);

}  // namespace brasa::eager
