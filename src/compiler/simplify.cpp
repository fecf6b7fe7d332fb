#include "compiler/simplify.h"

#include "ops/decompose.h"

namespace brasa::compiler {

std::unique_ptr<ir::Graph> simplify(const ir::Graph& graph, ir::Facts& facts) { return ops::decompose(graph, facts); }

}  // namespace brasa::compiler
