#include "ops/interpreter.h"

#include "ops/decompose.h"
#include "support/failed_check.h"

namespace brasa::ops {

std::vector<Array> evaluate(const ir::Graph& graph, std::span<const Array> inputs) {
  ir::Facts none;
  std::unique_ptr<ir::Graph> primitives = decompose(graph, none);
  std::vector<std::vector<Array>> results(primitives->nodes().size());
  for (const Node* n : live_nodes(*primitives)) {
    if (n->op == ir::input_op()) {
      results[n->id] = {inputs[n->arg<Expr>(0).constant()]};
      continue;
    }
    std::vector<const Array*> operands;
    n->for_each_input([&](Value v) { operands.push_back(&results[v.node->id][v.index]); });
    results[n->id] = row_of(*n).eval(*n, operands);
  }
  std::vector<Array> out;
  for (const ir::Output& o : primitives->outputs()) {
    const Array& a = results[o.value.node->id][o.value.index];
    if (!o.check.empty() && a.data[0] == std::byte{0}) fail_checked(o.check);
    out.push_back(a);
  }
  return out;
}

}  // namespace brasa::ops
