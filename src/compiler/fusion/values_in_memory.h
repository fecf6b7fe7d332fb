#pragma once

#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace brasa::compiler {

/// Kernels with more pointers than this lose registers, and gain nothing.
constexpr size_t kMaxBuffers = 48;

/// The nodes, by id, whose results go to memory; all others are computed again wherever they are read. `forced` ones do in any case.
std::vector<bool> values_in_memory(const ir::Graph& graph, const std::unordered_set<ir::Value>& forced);

/// Work for one element of a point-wise primitive, in simple instructions.
int work_of(const ir::Node* n);

}  // namespace brasa::compiler
