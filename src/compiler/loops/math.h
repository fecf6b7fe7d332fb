#pragma once

#include <memory>

#include "ir/graph.h"

namespace brasa::compiler {

/// A copy of a loop graph in which every function that no processor has an instruction for (exp, sin, philox, …) is
/// spelled out in arithmetic, at most 4 ulp off in float32 and float64. Shared by all targets.
std::unique_ptr<ir::Graph> expand_math(const ir::Graph& graph);

}  // namespace brasa::compiler
