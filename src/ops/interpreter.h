#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ops/table.h"

namespace brasa::ops {

/// A copy of the graph with every size expression replaced by f(size) (a constant).
std::unique_ptr<ir::Graph> specialised(const ir::Graph& graph, const std::function<int64_t(Expr)>& f);

/// Evaluates a graph whose sizes are constants; one array for each output (checks too). Composed operators are expanded.
/// brasa::IndexError if a check fails. Slow: the definition of what a graph means.
std::vector<Array> evaluate(const ir::Graph& graph, std::span<const Array> inputs);

}  // namespace brasa::ops
