#pragma once

#include "tensor/computation.h"

namespace brasa::eager {

/// Gives the results of a derivative as views of its operands, where they are nothing else, and so large that this spares memory: the
/// gradients of a sum and of what a concatenation joins. False, with nothing done, where some are computed. Records nothing.
bool view_gradients(const Backward& backward, std::span<const InputTensor> operands, Results& results);

}  // namespace brasa::eager
