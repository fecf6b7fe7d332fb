#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/passes/passes.h"
#include "compiler/run/compiled.h"
#include "runtime/image.h"

namespace brasa::compiler {

/// The passes over graphs of primitives, in order: algebra that any backend may use, and what brings a graph into forms that
/// have a lowering.
std::span<const GraphPass> algebra_passes();
std::span<const GraphPass> form_passes();

/// The loops of all distinct kernels that a graph becomes, without compiling them.
std::vector<std::string> kernel_texts(const ir::Graph& graph, ir::Facts& facts, const CompilerOptions& options);

/// A graph's plan and its kernels' code for `options.target`, not loaded: to be written to a file.
struct Portable {
  CompiledGraph::Parts parts;
  std::vector<runtime::KernelImage> images;
  struct Entry {
    size_t image;
    uint64_t offset;
  };
  std::vector<Entry> kernels;  // by Step::code; of a GPU's code named "k0", "k1", …
  int note = -1;               // of a GPU: the kernel that CompiledGraph::Parts::note is, where there are checks
};
/// No library computes anything there: brasa::Error names a node that has no loops. A target "nvptx+sm_80@x86-64" is a GPU's loops as code of the CPU.
Portable compile_portable(const ir::Graph& graph, ir::Facts& facts, const CompilerOptions& options);

/// From a graph of operators or primitives to kernels: every step in order.
std::shared_ptr<Executable> run_pipeline(const ir::Graph& graph, ir::Facts& facts, const CompilerOptions& options);

/// How many graphs `compile` has made ready, by the interpreter too.
int64_t compilations();
/// How many nodes these had.
int64_t compiled_nodes();

}  // namespace brasa::compiler
