#include "tensor/backend.h"

namespace brasa::eager {

std::shared_ptr<compiler::Executable> executable_of(const ir::Graph& graph, ir::Facts&) { return compiler::interpret(graph); }

}  // namespace brasa::eager
