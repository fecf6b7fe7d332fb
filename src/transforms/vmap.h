#pragma once

#include <memory>
#include <vector>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::transforms {

/// The graph for `count` calls at once, as one graph of primitives and of what detaches: inputs that `mapped` marks have one more dimension of that
/// size in front, the others are the same in every call. Every output has it in front; a check holds if it does in every call.
/// A call's graph has no outputs into inputs.
std::unique_ptr<ir::Graph> vmap(const ir::Graph& graph, ir::Facts& facts, const std::vector<bool>& mapped,
                                ir::Expr count);

}  // namespace brasa::transforms
