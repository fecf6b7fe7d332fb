#pragma once

#include "compiler/lowering/lowered_graph.h"
#include "compiler/run/compiled.h"

namespace brasa::compiler {

/// The steps of a plan with their memory and their kernels, as an executable for the device. `note`: the kernel of note_loops, where
/// the plan has checks and the device works behind the host.
std::shared_ptr<Executable> assemble(const ir::Graph& graph, const LoweredGraph& lowered,
                                     const std::vector<LoadedKernel>& loaded, LoadedKernel note, Report report,
                                     runtime::Device& device);

/// Where a check's bool is false, writes a number into a word that is zero: buffers {bool[1], word[1]}, then the number.
std::unique_ptr<ir::Graph> note_loops();

}  // namespace brasa::compiler
