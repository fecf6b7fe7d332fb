#pragma once

#include <memory>

#include "ir/graph.h"

namespace brasa::compiler {

/// A GPU's loop graph for the CPU: blocks in parallel, the threads of a block one after the other. It computes the same, so that
/// a GPU's schedules and lowering are tested without one, and a kernel that differs on the GPU is the code generator's fault.
std::unique_ptr<ir::Graph> emulated(const ir::Graph& loops);

/// A GPU's loops of a kernel that is called so many times in one launch.
std::unique_ptr<ir::Graph> called(const ir::Graph& loops, size_t calls);

}  // namespace brasa::compiler
