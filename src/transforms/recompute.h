#pragma once

#include <memory>

#include "transforms/cut.h"

namespace brasa::transforms {

/// A copy of a graph of primitives whose backward part, the nodes that are not `forward` (by id), computes values of the forward part again
/// where `keeping` wants it, so that these need not lie in memory in between. Null: there are none such.
std::unique_ptr<ir::Graph> recompute(const ir::Graph& graph, const std::vector<bool>& forward, const ir::Facts& facts,
                                     const Keeping& keeping);

}  // namespace brasa::transforms
