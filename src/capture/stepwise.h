#pragma once

#include <memory>

#include "capture/backend.h"

namespace brasa::capture {

/// Runs each node of a graph as a compiled graph of its own, in order: what eager does, without its
/// dispatch. For finding out which part of the stack a difference comes from.
/// `trace_nan`: a node that makes a NaN of operands without one is a brasa::Error that shows it.
std::shared_ptr<compiler::Executable> run_stepwise(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device,
                                                   bool trace_nan = false);

}  // namespace brasa::capture
