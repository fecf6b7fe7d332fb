#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "tensor/args.h"
#include "tensor/sparse/parts.h"

// Which operators take sparse operands. Each file of the folder has a list; table.cpp joins them.
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

struct Entry {
  std::string_view row;
  Tensor (*run)(Call& call);
};
std::span<const Entry> elementwise_entries();
std::span<const Entry> arithmetic_entries();
std::span<const Entry> product_entries();
std::span<const Entry> reduction_entries();
std::span<const Entry> shape_entries();

/// Whether every row of the lists is one of the operator table; for a test.
std::vector<std::string_view> entry_names();

/// Of a sum it is the sum of what it is of the terms: entries of one index need not be merged.
Tensor linear(Call& c);
Scalar negated(const Scalar& s);
/// dense += alpha * sparse in dense's memory.
void add_into(const Tensor& dense, const Tensor& sparse, const Scalar& alpha);

}  // namespace brasa::eager::sparse
