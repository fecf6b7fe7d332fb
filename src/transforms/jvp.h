#pragma once

#include <memory>
#include <vector>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::transforms {

/// Appends to the current Builder's graph the tangents of `outputs` for tangents of `inputs`; absent Values mean zero, in
/// both directions. What lies between them are primitives. Integer values carry no tangent.
std::vector<ir::Value> pushforward(const std::vector<ir::Value>& inputs, const std::vector<ir::Value>& tangents,
                                   const std::vector<ir::Value>& outputs);

/// The directional derivative: computes the outputs of `graph` and J · tangent in one graph of primitives and of what detaches.
/// Inputs: those of `graph`, then one tangent for each input that `has_tangent` marks.
/// Outputs: those of `graph` (checks at their place), then the tangents of those that depend on a marked input;
/// `tangent_of[i]` is the position of output i's among all outputs, or -1 where it is zero.
struct Forward {
  std::unique_ptr<ir::Graph> graph;
  std::vector<int> tangent_of;
};
Forward jvp(const ir::Graph& graph, ir::Facts& facts, const std::vector<bool>& has_tangent);

}  // namespace brasa::transforms
