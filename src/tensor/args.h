#pragma once

#include <forward_list>
#include <memory>
#include <span>
#include <vector>

#include <brasa/call.h>

#include "ops/table.h"

namespace brasa::eager {

/// Copies of a call's arguments, which outlive the call.
class ArgStore {
 public:
  explicit ArgStore(std::span<const CallArg> args);
  ArgStore(const ArgStore&) = delete;
  ArgStore& operator=(const ArgStore&) = delete;
  std::span<const CallArg> args() const { return args_; }
  /// The tensors in it, in order; writable, for snapshots.
  std::vector<Tensor>& tensors() { return tensors_; }

 private:
  std::vector<CallArg> args_;
  std::vector<Tensor> tensors_;
  std::vector<std::optional<Tensor>> optional_tensors_;
  std::vector<Scalar> scalars_;
  std::vector<int64_t> ints_;
  std::vector<double> doubles_;
  std::unique_ptr<bool[]> bools_;
  std::vector<char> chars_;
  std::vector<Generator> generators_;
};

/// A node's literal arguments as a call has them. What they point to lives as long as this.
class Literals {
 public:
  CallArg of(const ir::Arg& arg, const ir::Param& param);
  /// For a parameter that the caller left out; None where the schema has no default.
  CallArg default_of(const ir::Param& param);
  /// Appends the defaults of the parameters that the arguments leave out, up to `count` arguments.
  void fill_up(std::vector<CallArg>& args, const std::vector<ir::Param>& params, size_t count);

 private:
  std::forward_list<std::vector<int64_t>> ints_;
  std::forward_list<std::vector<Scalar>> scalars_;
  std::forward_list<std::unique_ptr<bool[]>> bools_;
};

/// A literal argument as the IR has it, in the form that the parameter asks for; brasa::Error if it does not fit.
ir::Arg literal(const CallArg& arg, const ir::Param& param, const ops::Row& row);
ir::Arg literal(const Scalar& s);
/// Whether that literal is `known`, found without making it; false also where that takes too long to say.
bool surely_equal(const CallArg& arg, const ir::Param& param, const ir::Arg& known);

}  // namespace brasa::eager
