#pragma once

#include <memory>

#include "tensor/autograd/checkpoint.h"

namespace brasa::autograd {

/// What the hooks of this thread make of a saved tensor; null without any, and for numbers.
std::unique_ptr<Elsewhere> packed(const Tensor& t);

}  // namespace brasa::autograd
