#pragma once

#include "ops/algebra.h"

// Looking up in sorted lines.
namespace brasa::ops {

/// How many elements of an ascending line are less than each value, or, with `equal_too`, not greater; NaN is the greatest. One line [n]
/// for x of any shape, or lines [batch…, n] for x [batch…, m].
Value count_before(Value lines, Value x, bool equal_too);

}  // namespace brasa::ops
