#pragma once

#include "ops/primitives.h"

// What runs along a dimension.
namespace brasa::ops {

/// Of each element the one before it along dim; of the first one `first`.
Value previous(Value x, int64_t dim, const Number& first);

namespace prim {
/// A running sum y with factors, which are real and of x's shape: y[k] = factor[k] · y[k - 1] + x[k] along dim.
Value recurrence(Value x, Value factor, int64_t dim);
}  // namespace prim

}  // namespace brasa::ops
