#pragma once

#include "tensor/dispatch.h"
#include "tensor/geometry.h"

namespace brasa::eager {

/// The order in which the dimensions of a call's first result lie in memory, from outside; empty: row-major. Attention's are in the
/// order of the query's, where PyTorch's kernel for CPUs computes it, so that heads are put beside each other without a copy.
Sizes order_of_result(const Operator& op, CallArgs args);

/// Lets a tensor lie so whose dimensions are there in that order, row-major.
void name_in_order(const Tensor& t, const Sizes& order);

/// In which result r lies; those behind the last that has an order lie as that one, where they have as many dimensions.
Sizes order_of_result(const Orders& orders, size_t r);

}  // namespace brasa::eager
