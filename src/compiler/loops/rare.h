#pragma once

#include <vector>

#include "compiler/loops/math.h"

namespace brasa::compiler {

/// What an unlikely node computes in its branch, as a kernel that stores a function of its numbers.
struct RareBody {
  ExpandedMath math;
  std::vector<ir::Value> operands;  // the numbers, in the graph of the node
};

/// What the node's condition and its usual value need as well, and what is read from buffers, are operands. `kernel`: the graph of the node.
RareBody rare_body(const ir::Node* unlikely, const ExpandedMath& kernel);

}  // namespace brasa::compiler
