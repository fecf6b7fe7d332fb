#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace brasa::compiler {

/// Nodes of a loop graph whose products and sums are rounded one by one, as eager operators round them, since more than last digits depends on it:
/// - those that make numbers which are compared, or rounded to integers, up to memory and sums. A kernel that finds a maximum and then asks which
///   elements equal it computes them twice; a backward pass asks once more which way a choice went;
/// - differences with a product: of two equal products it is 0, and a mean of squares minus the square of a mean is not negative.
std::unordered_set<const ir::Node*> compared(const ir::Graph& graph);

}  // namespace brasa::compiler
