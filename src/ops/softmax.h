#pragma once

#include "ops/algebra.h"

namespace brasa::ops {

/// exp(x) of what is added to a 1: 0 where it would be denormal, a number that processors take a hundred times as long for.
Value exp_beside_one(Value x);

}  // namespace brasa::ops
