#pragma once

#include "tensor/dispatch.h"
#include "tensor/tensor_impl.h"

// Elements that share memory where one of them is written.
namespace brasa::eager {

/// brasa::Error if elements of a tensor that is written share memory with each other.
void check_writable(const TensorImpl& t);

/// Whether a call reads memory of this operand after it has written there: in another order, or at places that an index names.
bool overlaps(const Operator& op, const TensorImpl& target, const Tensor& read);
/// brasa::Error if PyTorch refuses a call because it writes into `target` what it reads from the arguments from number `first` on. Dense operands
/// of a call that goes element by element must be the written elements or apart from them, and those of one that finds places by an index
/// apart. All others are read before anything is written.
void check_operands(const Operator& op, CallArgs args, size_t first, const Tensor& target);

/// A call in place of a tensor whose elements share memory. brasa::Error unless each of them stays or gets a number, whatever is there: then each piece of
/// memory gets what the last of the elements does that change.
void fill_shared(Operator& op, CallArgs args, const Tensor& self);

}  // namespace brasa::eager
