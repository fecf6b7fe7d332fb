#include "compiler/loops/math.h"

namespace brasa::compiler {

std::unique_ptr<ir::Graph> expand_math(const ir::Graph& graph) {
  auto out = std::make_unique<ir::Graph>(graph.level());
  out->name = graph.name;
  ir::ValueMap map;
  for (const ir::Node* n : graph.nodes()) {
    if (int i = graph.input_index(ir::Value{const_cast<ir::Node*>(n), 0}); i >= 0) {
      map.set(ir::Value{const_cast<ir::Node*>(n), 0}, out->add_input(n->types[0], graph.inputs()[i].name));
      continue;
    }
    ir::Args args;
    for (const ir::Arg& a : n->args) args.push_back(map(a));
    ir::Node* copy = out->add(n->op, std::move(args), n->types);
    for (uint32_t r = 0; r < n->types.size(); ++r) map.set(ir::Value{const_cast<ir::Node*>(n), r}, copy->out(r));
  }
  return out;
}

}  // namespace brasa::compiler
