#pragma once

#include "compiler/lowering/lowered_graph.h"
#include "compiler/run/compiled.h"

namespace brasa::compiler {

/// The steps of a plan with their memory and their kernels, as an executable for the device. `emulated`: what CudaCheck compares a
/// GPU's kernels with, or none.
std::shared_ptr<Executable> assemble(const ir::Graph& graph, const LoweredGraph& lowered,
                                     const std::vector<LoadedKernel>& loaded, const std::vector<LoadedKernel>& emulated,
                                     Report report, const std::string& device);

}  // namespace brasa::compiler
