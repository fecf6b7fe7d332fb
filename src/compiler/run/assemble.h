#pragma once

#include "compiler/lowering/lowered_graph.h"
#include "compiler/run/compiled.h"

namespace brasa::compiler {

/// What the pipeline makes of a graph before there is code.
struct Assembled {
  CompiledGraph::Parts parts;      // no kernel is loaded
  std::vector<std::string> texts;  // of each distinct kernel
  std::vector<KernelCost> costs;   // as load_kernels takes them
  bool relies_on_alignment = false;
};

/// The steps of a plan with their memory. What calls of libraries assume of sizes goes to `facts`.
CompiledGraph::Parts assemble(const ir::Graph& graph, const LoweredGraph& lowered, const CompilerOptions& options,
                              ir::Facts& facts);
/// Makes `s` the call of a group's library.
void call_library(Step& s, const Group& group, const CompilerOptions& options, ir::Facts& facts);
/// Gives steps their kernels, by Step::code.
void put_kernels(std::vector<Step>& steps, const std::vector<LoadedKernel>& loaded);

/// Where one of the checks' bools is false, writes into a word that is zero a number and how many are true before: buffers {bool[1] for each
/// check, word[1]}, then the number.
std::unique_ptr<ir::Graph> note_loops(size_t checks);

}  // namespace brasa::compiler
