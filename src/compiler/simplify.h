#pragma once

#include <memory>

#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::compiler {

/// The same graph by algebra: the rules of simplify.cpp, to a fixed point.
std::unique_ptr<ir::Graph> simplify(const ir::Graph& graph, ir::Facts& facts);

}  // namespace brasa::compiler
