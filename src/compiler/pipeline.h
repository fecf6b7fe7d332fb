#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/passes/passes.h"

namespace brasa::compiler {

/// The passes over graphs of primitives, in order: algebra that any backend may use, and what brings a graph into forms that
/// have a lowering.
std::span<const GraphPass> algebra_passes();
std::span<const GraphPass> form_passes();

/// The loops of all distinct kernels that a graph becomes, without compiling them.
std::vector<std::string> kernel_texts(const ir::Graph& graph, ir::Facts& facts, const CompilerOptions& options);

/// From a graph of operators or primitives to kernels: every step in order.
std::shared_ptr<Executable> run_pipeline(const ir::Graph& graph, ir::Facts& facts, const CompilerOptions& options);

/// How many graphs `compile` has made ready, by the interpreter too.
int64_t compilations();

}  // namespace brasa::compiler
