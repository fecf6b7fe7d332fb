#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"
#include "runtime/cuda/epilogue.h"

namespace brasa::compiler {

/// What is made of a tensor of reduced floats, element by element, and rounded as these are.
struct Activation {
  ir::Value of;
  runtime::cuda::Epilogue epilogue;
  std::vector<const ir::Node*> inside;  // between both, without constants
};

/// What `last` is of the first tensor on its way that `ends` says; nothing where it is no such function, or has none in numbers of float32.
std::optional<Activation> activation_of(const ir::Node& last, const std::function<bool(ir::Value)>& ends);

}  // namespace brasa::compiler
