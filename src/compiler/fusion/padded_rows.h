#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "compiler/fusion/fuse.h"

namespace brasa::compiler {

/// Operands and results of products whose rows would not begin at multiples of 16 bytes get longer rows in memory, where all who read them can:
/// their strides. `library`, by node: what computes it; `kind`: of the kernel that has it.
std::unordered_map<const ir::Node*, std::vector<ir::Expr>> padded_rows(
    const ir::Graph& graph, const std::vector<bool>& in_memory, const std::vector<const Implementation*>& library,
    const std::function<GroupKind(const ir::Node*)>& kind);

}  // namespace brasa::compiler
