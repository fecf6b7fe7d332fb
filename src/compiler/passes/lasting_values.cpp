#include <algorithm>
#include <vector>

#include "compiler/fusion/indexing.h"
#include "compiler/passes/transform.h"

namespace brasa::compiler {
namespace {

// By node: whether it computes from lasting inputs alone, from one at least.
std::vector<bool> lasting_nodes(const ir::Graph& graph, const std::vector<bool>& inputs) {
  std::vector<bool> lasts(graph.nodes().size());
  for (size_t i = 0; i < inputs.size(); ++i) lasts[graph.inputs()[i].value.node->id] = inputs[i];
  for (const Node* n : graph.nodes()) {
    if (prim_of(n) == Prim::Input) continue;
    bool all = true, any = false;
    n->for_each_input([&](Value v) {
      if (is_leaf(prim_of(v))) return;
      any = true;
      all = all && lasts[v.node->id];
    });
    lasts[n->id] = any && all;
  }
  return lasts;
}

}  // namespace

void keep_lasting_values(Primitives& p, const PassContext& context) {
  if (context.machine.gpu || std::find(context.lasting.begin(), context.lasting.end(), true) == context.lasting.end())
    return;
  std::vector<bool> lasts = lasting_nodes(*p.graph, context.lasting);
  for (const Node* n : p.graph->nodes()) {
    if (prim_of(n) != Prim::Broadcast) continue;
    Value v = below_views(n->arg<Value>(0));
    if (prim_of(v) == Prim::Pointwise && lasts[v.node->id] && !(n->types[0].numel() == type_of(v).numel()))
      in_memory(v, p);
  }
}

}  // namespace brasa::compiler
