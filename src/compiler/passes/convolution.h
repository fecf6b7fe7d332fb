#pragma once

#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::compiler {

/// Asks what decides on the form of a convolution: small steps, kernels and groups are known then.
void ask_of_convolution(const ir::Node* n, ir::Facts& facts);

}  // namespace brasa::compiler
