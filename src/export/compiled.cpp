#include "export/compiled.h"

#include <memory>

#include "ir/copy.h"
#include "support/error.h"

namespace brasa::exporting {
namespace {

// The node's graph alone.
std::unique_ptr<ir::Graph> alone(const ir::Node& n, const ir::Graph& graph) {
  auto one = std::make_unique<ir::Graph>(graph.level());
  ir::ValueMap map;
  n.for_each_input([&](ir::Value v) { map.set(v, one->add_input(ir::type_of(v))); });
  ir::Node* copy = ir::copy_node(*one, n, map);
  for (uint32_t r = 0; r < n.types.size(); ++r) one->add_output(copy->out(r));
  return one;
}

}  // namespace

compiler::Portable compiled(const ir::Graph& graph, ir::Facts& facts, const compiler::CompilerOptions& options) {
  ir::Facts before = facts;
  try {
    return compiler::compile_portable(graph, facts, options);
  } catch (const Error&) {
    for (const ir::Node* n : ir::live_nodes(graph)) {
      if (n->op == ir::input_op()) continue;
      ir::Facts known = before;
      try {
        compiler::compile_portable(*alone(*n, graph), known, options);
      } catch (const Error& e) {
        fail(str("export: ", n->op->name(), " has no code that runs alone: ", e.what()));
      }
    }
    throw;
  }
}

}  // namespace brasa::exporting
