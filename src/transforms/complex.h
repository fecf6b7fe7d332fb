#pragma once

#include <memory>

#include "ir/facts.h"
#include "ops/table.h"

namespace brasa::transforms {

/// A graph of primitives in which every complex value is two real ones, so that what follows works on real numbers alone. A complex
/// input or output is the same memory as reals with a last dimension of 2. A graph without complex values is copied as it is.
/// With `size_classes` facts tell few rows of an unknown number apart. brasa::Error for a primitive that has no formula on parts.
std::unique_ptr<ir::Graph> split_complex(const ir::Graph& graph, ir::Facts& facts, bool size_classes = false);

}  // namespace brasa::transforms
