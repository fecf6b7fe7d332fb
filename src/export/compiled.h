#pragma once

#include "compiler/pipeline.h"

namespace brasa::exporting {

/// compiler::compile_portable; where a part of the graph has no code, the error names the operator that the function called.
compiler::Portable compiled(const ir::Graph& graph, ir::Facts& facts, const compiler::CompilerOptions& options);

}  // namespace brasa::exporting
