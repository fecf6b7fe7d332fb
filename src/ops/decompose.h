#pragma once

#include <functional>
#include <memory>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::ops {

/// A copy of the graph in which composed operators are expanded until only primitives, and rows that `keep` holds on to, are
/// left. Dead nodes are not copied. New facts go to `facts`. Checks that compositions make become outputs of the copy.
std::unique_ptr<ir::Graph> decompose(const ir::Graph& graph, ir::Facts& facts,
                                     const std::function<bool(const Row&)>& keep = nullptr);

}  // namespace brasa::ops
