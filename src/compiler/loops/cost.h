#pragma once

#include <functional>
#include <optional>
#include <string_view>

#include "ir/graph.h"

namespace brasa::compiler {

/// What a kernel comes to, in scalar operations.
struct KernelCost {
  double code = 0;  // that stand in its code: a vector is one, copies of unrolled loops count each
  double run = 0;   // of a run, element by element; infinite where a size is not known
};

/// `size` gives what a symbol of the kernel's sizes is expected to be.
KernelCost cost_of(const ir::Graph& loops, const std::function<std::optional<int64_t>(ir::Expr symbol)>& size);
/// KernelCost::code of a kernel's text.
double code_of(std::string_view text);

}  // namespace brasa::compiler
