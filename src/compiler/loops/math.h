#pragma once

#include <memory>
#include <unordered_set>

#include "ir/graph.h"
#include "ops/scalar_op.h"

namespace brasa::compiler {

struct ExpandedMath {
  std::unique_ptr<ir::Graph> graph;
  /// Nodes whose results must not be contracted into an FMA.
  std::unordered_set<const ir::Node*> exact;
};

/// Whether float32 and narrower floats take double elements on the way.
bool computes_in_double(ops::ScalarOp op);

/// A copy of a loop graph in which every function that no processor has an instruction for (exp, sin, …) is
/// spelled out in arithmetic, at most 4 ulp off in float32 and float64. Shared by all targets.
ExpandedMath expand_math(const ir::Graph& graph);

}  // namespace brasa::compiler
