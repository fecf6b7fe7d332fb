#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <brasa/call.h>

#include "ops/table.h"
#include "support/mutex.h"
#include "tensor/autocast.h"
#include "tensor/computation.h"

// The one way into every operator. Generated functions pack their arguments and call one of the functions below.
namespace brasa::eager {

/// What dispatch keeps for a row.
class Operator {
 public:
  explicit Operator(const ops::Row& row);
  const ops::Row& row() const { return row_; }
  /// "MulBackward1".
  const std::string& backward_name() const { return backward_name_; }

  struct Parameter {
    ir::ParamType type;
    bool list = false;
    std::optional<Scalar> default_number;
    ir::NumberUse use = ir::NumberUse::Known;
    std::vector<double> special;  // numbers that a computation knows nevertheless
  };
  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Takes tensors and numbers, and nothing of it is special to the functions below.
  bool plain() const { return plain_; }
  /// Whether autocast converts its operands.
  bool casts() const { return casts_; }
  /// Instead of a computation, for operators that are about memory and not about values; null for the others.
  using Memory = Tensor (*)(ArrayRef<CallArg> args, const ir::Args& literals);
  Memory memory() const { return memory_; }
  /// Changes operands although it is no in-place form (running statistics).
  bool mutates() const { return mutates_; }
  /// Whether an operand says where in another it reads or writes: a call in place must not read what it writes at all.
  bool places() const { return places_; }
  /// Of a factory the position of its dtype; without one it gives what the row knows as the default, float32. Else -1.
  int dtype_parameter() const { return dtype_parameter_; }
  /// The position of its layout; -1 where there is none.
  int layout_parameter() const { return layout_parameter_; }
  /// The argument by which a caller asks for a sparse gradient of the first operand; -1 where there is none.
  int sparse_gradient() const { return sparse_gradient_; }

  /// The computation for these literal arguments (as words); null if there is none yet.
  const RowComputation* find(const Words& words);
  /// Keeps one; gives what is kept.
  const RowComputation& add(const Words& words, std::unique_ptr<RowComputation> computation);
  /// The derived operator of the operands' cotangents (see transforms::vjp_row).
  Operator& backward(const std::vector<bool>& needs, const std::vector<bool>& given);

 private:
  struct Known {
    std::vector<uint64_t> words;
    std::unique_ptr<RowComputation> computation;
  };
  const ops::Row& row_;
  std::string backward_name_;
  std::vector<Parameter> parameters_;
  Memory memory_ = nullptr;
  bool plain_ = false, mutates_ = false, casts_ = false, places_ = false;
  int dtype_parameter_ = -1;
  int layout_parameter_ = -1;
  int sparse_gradient_ = -1;
  std::atomic<const Known*> last_{nullptr};
  Mutex mutex_;
  std::map<std::vector<uint64_t>, std::unique_ptr<Known>> programs_;
  std::map<std::pair<std::vector<bool>, std::vector<bool>>, Operator*> backwards_;
};

/// By position in the table, as brasa-gen numbers rows.
Operator& op(size_t index);
/// Of the table, or derived (transforms::vjp_row).
Operator& op(const ops::Row& row);
/// By name; brasa::Error if there is none.
Operator& op(std::string_view name);

using CallArgs = ArrayRef<CallArg>;

/// The error again, with the operator's name and what it was called with.
[[noreturn]] void rethrow_named(const Operator& op, ArrayRef<CallArg> args, const Error& e);

/// Calls the functional form.
void call(Operator& op, CallArgs args, Results& results);
/// As `call`; where a row changes operands, nothing is written and their new values follow its results.
void call_functional(Operator& op, CallArgs args, Results& results);
Tensor call_one(Operator& op, CallArgs args);
void call_many(Operator& op, CallArgs args, Tensor* results, size_t n);
std::vector<Tensor> call_list(Operator& op, CallArgs args);
/// Writes the result into `self`, which is the first argument; returns it.
Tensor& call_in_place(Operator& op, CallArgs args, const Tensor& self);
/// Resizes `out` to the result and writes it there; an undefined one becomes the result.
Tensor& call_out(Operator& op, CallArgs args, Tensor& out);
/// The same of an operator with several results.
void call_outs(Operator& op, CallArgs args, ArrayRef<Tensor*> outs);
/// The function of an operator that is about memory; null for None.
Operator::Memory memory_function(ops::Memory what);
/// Where a call of these arguments runs: see execute. brasa::Error if they live apart.
runtime::Device& common_device(CallArgs args);
/// A factory's result with the options' requires_grad.
Tensor with_options(Tensor t, const TensorOptions& options);

/// For hand-written operators: by name, results by value.
inline Tensor call_one(std::string_view name, std::initializer_list<CallArg> args) {
  return call_one(op(name), CallArgs(args.begin(), args.end()));
}

}  // namespace brasa::eager
