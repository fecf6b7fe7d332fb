#pragma once

#include <brasa/dtype.h>

namespace brasa::eager {

/// brasa::Error if an operator whose result has dtype `result` must not write it into its first operand, of dtype `self`.
void check_in_place(DType result, DType self);

}  // namespace brasa::eager
