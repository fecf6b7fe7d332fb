#pragma once

#include "ops/algebra.h"

namespace brasa::ops {

/// Equal shapes, in the floating or complex dtype in which PyTorch divides a and b. Each is converted from its own dtype: an integer
/// must not wrap in a narrower one on its way.
std::array<Value, 2> promoted_to_float(Value a, Value b);
std::array<Value, 2> promoted_to_float(Value a, const Number& b);

}  // namespace brasa::ops
