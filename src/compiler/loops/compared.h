#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace brasa::compiler {

/// Nodes of a loop graph that make numbers whose equality is asked, up to memory and sums. A kernel that finds a maximum and then asks which
/// elements equal it computes them twice, and must round them in one way: were a product and a sum one operation in one place and two in
/// the other, nothing would be equal.
std::unordered_set<const ir::Node*> compared(const ir::Graph& graph);

}  // namespace brasa::compiler
