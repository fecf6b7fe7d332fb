#pragma once

#include "compiler/lowering/lowered_graph.h"
#include "compiler/run/compiled.h"

namespace brasa::compiler {

/// The steps of a plan with their memory and their kernels, `loaded` where they are to run here. What calls of libraries assume of sizes goes
/// to `facts`.
CompiledGraph::Parts assemble(const ir::Graph& graph, const LoweredGraph& lowered,
                              const std::vector<LoadedKernel>& loaded, const CompilerOptions& options,
                              ir::Facts& facts);

/// Where a check's bool is false, writes a number into a word that is zero: buffers {bool[1], word[1]}, then the number.
std::unique_ptr<ir::Graph> note_loops();

}  // namespace brasa::compiler
