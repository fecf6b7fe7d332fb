#pragma once

#include <vector>

#include "tensor/dispatch.h"
#include "tensor/tensor_impl.h"

// Sparse tensors as compositions of operators on their dense parts. What the rest of the library calls is here.
namespace brasa::eager::sparse {

inline bool is_sparse(const Tensor& t) { return t.defined() && impl_of(t)->sparse; }
bool any_in_list(const CallArg& a);
/// Whether an operand of a call is sparse.
inline bool any_of(CallArgs args) {
  for (const CallArg& a : args) {
    if (a.kind == CallArg::Kind::Tensor) {
      if (impl_of(*a.tensor)->sparse) [[unlikely]]
        return true;
    } else if ((a.kind == CallArg::Kind::Tensors || a.kind == CallArg::Kind::OptionalTensors) && any_in_list(a)) {
      return true;
    }
  }
  return false;
}

/// A call with a sparse operand: as table.cpp says for the row; brasa::Error where it has no entry.
void call(Operator& op, CallArgs args, Results& results);
Tensor& call_in_place(Operator& op, CallArgs args, const Tensor& self);

/// Whether this is a lookup whose weight wants a gradient and is to get a sparse one.
bool gradient_asked_for(const Operator& op, CallArgs args);
void call_with_sparse_gradient(Operator& op, CallArgs args, Results& results);

/// A factory's tensor in a sparse layout; brasa::Error of one whose elements are not all zero.
void call_factory(Operator& op, CallArgs args, Results& results);
/// A tensor of zeros, in the options' layout.
Tensor without_entries(IntArrayRef sizes, const TensorOptions& options);

/// The same values without history.
Tensor detached(const Tensor& t);
/// t's pattern with other values, one for each of its entries.
Tensor with_values(const Tensor& t, const Tensor& values);
/// The elements of `g`, dense or sparse, at t's entries.
Tensor values_at(const Tensor& g, const Tensor& t);

}  // namespace brasa::eager::sparse
