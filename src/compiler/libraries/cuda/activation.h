#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "runtime/cuda/epilogue.h"

namespace brasa::compiler {

/// What is made of a tensor of reduced floats, and perhaps of another one, element by element, and rounded as these are.
struct Activation {
  ir::Value of, other;  // no other: null
  runtime::cuda::Epilogue epilogue;
  std::vector<const ir::Node*> inside;  // what computes it, without constants
  std::vector<const ir::Node*> widens;  // between `of` and what computes, from there on
};

/// What these are, the last one last, of the latest tensor on their way that `ends` says, and of at most one more: another such, or an input.
/// Nothing where they are no such functions, or have none in numbers of float32.
std::optional<Activation> activation_of(std::span<const ir::Node* const> stored,
                                        const std::function<bool(ir::Value)>& ends);

}  // namespace brasa::compiler
