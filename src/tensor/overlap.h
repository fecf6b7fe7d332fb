#pragma once

#include "tensor/tensor_impl.h"

// Elements that share memory where one of them is written.
namespace brasa::eager {

/// brasa::Error if elements of a tensor that is written share memory with each other.
void check_writable(const TensorImpl& t);

/// Whether memory that a call writes is read by it in another order.
bool overlaps(const TensorImpl& target, const Tensor& read);

}  // namespace brasa::eager
