#pragma once

#include <memory>

#include "capture/backend.h"

namespace brasa::capture {

/// Runs each node of a graph as a compiled graph of its own, in order: what eager does, without its
/// dispatch. For finding out which part of the stack a difference comes from.
std::shared_ptr<compiler::Executable> run_stepwise(const ir::Graph& graph, ir::Facts& facts, runtime::Device& device);

}  // namespace brasa::capture
