#include "compiler/run/in_place.h"

#include <algorithm>

#include "compiler/fusion/indexing.h"

namespace brasa::compiler {

Value input_for(const Group& g, Value whole) {
  auto it = std::find(g.inputs.begin(), g.inputs.end(), whole);
  return it == g.inputs.end() ? Value{} : g.graph->inputs()[it - g.inputs.begin()].value;
}

namespace {

// Each element is made of those at the same place of the operands, where all lie row by row.
bool keeps_place(const ir::Node* n) { return prim_of(n) == Prim::Pointwise || prim_of(n) == Prim::Reshape; }

// A scatter that reads `old` as what its updates go into, and nowhere else.
bool only_updates(const Group& g, Value old) {
  const ir::Node* scatter = g.graph->outputs()[0].value.node;
  Value in = input_for(g, old);
  if (g.outputs.size() != 1 || scatter->arg<Value>(0) != in) return false;
  int reads = 0;
  for (const ir::Node* n : g.graph->nodes()) n->for_each_input([&](Value v) { reads += v == in; });
  return reads == 1;
}

}  // namespace

bool same_elements(const Group& g, Value old) {
  if (g.kind == GroupKind::Scatter) return only_updates(g, old);
  if (g.domain.has_reduced() || (g.kind != GroupKind::Loops && g.kind != GroupKind::Contraction)) return false;
  Value in = input_for(g, old);
  if (!(type_of(in).numel() == ir::product(g.domain.dims))) return false;
  // From there to the outputs only point-wise work on the whole domain.
  std::vector<bool> tainted(g.graph->nodes().size());
  tainted[in.node->id] = true;
  for (const ir::Node* n : g.graph->nodes()) {
    bool reads = false;
    n->for_each_input([&](Value v) { reads |= tainted[v.node->id]; });
    if (!reads) continue;
    if (!keeps_place(n)) return false;
    tainted[n->id] = true;
  }
  return true;
}

}  // namespace brasa::compiler
