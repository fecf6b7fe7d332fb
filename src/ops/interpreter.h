#pragma once

#include <span>
#include <vector>

#include "ops/table.h"

namespace brasa::ops {

/// Evaluates a graph whose sizes are constants; one array for each output (checks too). Composed operators are expanded.
/// brasa::IndexError if a check fails. Slow: the definition of what a graph means.
std::vector<Array> evaluate(const ir::Graph& graph, std::span<const Array> inputs);

}  // namespace brasa::ops
