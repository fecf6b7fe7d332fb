#pragma once

#include <map>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace brasa::compiler {

/// A `select` and which of its operands: 1 or 2.
using Branch = std::pair<const ir::Node*, size_t>;
/// Operands of selects that are long to compute, and that nothing else needs: they are worth a branch that only runs if some lane takes
/// them. Functions with a formula for each range of their argument have many. For each, what it is made of that others need, too, and so is
/// computed before it.
std::map<Branch, std::vector<ir::Value>> branches_of(const ir::Graph& graph);

}  // namespace brasa::compiler
