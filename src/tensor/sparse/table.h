#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/args.h"
#include "tensor/sparse/parts.h"

// How operators take sparse operands: a row names its form, and each form is one function.
namespace brasa::eager::sparse {

/// The arguments of a call, defaults filled in, of a row whose schema says what they are.
class Call {
 public:
  Call(Operator& op, CallArgs args);
  Operator& op() const { return op_; }
  const std::vector<CallArg>& args() const { return args_; }

  bool has_tensor(size_t i) const { return args_[i].kind == CallArg::Kind::Tensor; }
  /// A number where a tensor may stand becomes a tensor.
  const Tensor& tensor(size_t i);
  std::vector<Tensor> tensors(size_t i) const;
  bool has(size_t i) const { return i < args_.size() && args_[i].kind != CallArg::Kind::None; }
  Scalar number(size_t i) const;
  int64_t integer(size_t i) const { return number(i).toLong(); }
  bool flag(size_t i) const { return number(i).toBool(); }
  std::vector<int64_t> integers(size_t i) const;
  std::optional<DType> dtype(size_t i) const;
  /// A dimension in [0, rank), negative ones counted from the end; brasa::IndexError otherwise.
  int64_t wrapped(int64_t dim, int64_t rank) const;
  /// A dimension of the first operand.
  int64_t dim(size_t i) const { return wrapped(integer(i), args_[0].tensor->dim()); }

  /// The row on other tensors in place of some.
  Tensor with(size_t i, const Tensor& t) const;
  Tensor with(size_t i, const Tensor& t, size_t j, const Tensor& u) const;
  /// t with the values that the row gives of its values.
  Tensor on_values(const Tensor& t) const { return with_values(t, with(0, values_of(t))); }
  /// "add: not there for (sparse float32[2, 3], float32[2, 3])", and what to do.
  [[noreturn]] void unsupported(std::string_view why = {}) const;

 private:
  Operator& op_;
  std::vector<CallArg> args_;
  Literals defaults_;
  std::vector<Tensor> made_;
};

/// The function of each form that a row may have (ops::Sparse).
namespace forms {
Tensor linear(Call& c);
Tensor each(Call& c);
Tensor power(Call& c);
Tensor copy(Call& c);
Tensor copy_from(Call& c);
Tensor zeros(Call& c);
Tensor densified(Call& c);

Tensor add(Call& c);
Tensor sub(Call& c);
Tensor mul(Call& c);
Tensor div(Call& c);

Tensor mm(Call& c);
Tensor mv(Call& c);
Tensor bmm(Call& c);
Tensor matmul(Call& c);
Tensor addmm(Call& c);
Tensor addmv(Call& c);
Tensor linear_layer(Call& c);

Tensor sum(Call& c);
Tensor sum_over(Call& c);
Tensor norm(Call& c);
Tensor softmax(Call& c);
Tensor log_softmax(Call& c);
Tensor any(Call& c);

Tensor t(Call& c);
Tensor transpose(Call& c);
Tensor permute(Call& c);
Tensor unsqueeze(Call& c);
Tensor select(Call& c);
Tensor narrow(Call& c);
Tensor slice(Call& c);
Tensor index_select(Call& c);
Tensor cat(Call& c);
Tensor stack(Call& c);
}  // namespace forms

using Form = Tensor (*)(Call& call);
/// Null where sparse operands are an error.
Form function_of(ops::Sparse form);

Scalar negated(const Scalar& s);
/// dense += alpha * sparse in dense's memory.
void add_into(const Tensor& dense, const Tensor& sparse, const Scalar& alpha);

}  // namespace brasa::eager::sparse
