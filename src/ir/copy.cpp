#include "ir/copy.h"

namespace brasa::ir {

Args mapped(const Args& args, const ValueMap& map) {
  Args out;
  out.reserve(args.size());
  for (const Arg& a : args) out.push_back(map(a));
  return out;
}

void copy_inputs(Graph& to, const Graph& from, ValueMap& map) {
  for (const Input& in : from.inputs())
    map.set(in.value, to.add_input(type_of(in.value), in.name, in.strides, in.by_value));
}

Node* copy_node(Graph& to, const Node& n, ValueMap& map) {
  Node* copy = to.add(n.op, mapped(n.args, map), n.types);
  for (uint32_t r = 0; r < n.types.size(); ++r) map.set({const_cast<Node*>(&n), r}, copy->out(r));
  return copy;
}

void copy_live_nodes(Graph& to, const Graph& from, ValueMap& map) {
  for (const Node* n : live_nodes(from))
    if (n->op != input_op()) copy_node(to, *n, map);
}

std::unique_ptr<Graph> copy(const Graph& graph) {
  auto out = std::make_unique<Graph>(graph.level());
  out->name = graph.name;
  ValueMap map;
  copy_inputs(*out, graph, map);
  copy_live_nodes(*out, graph, map);
  for (const Output& o : graph.outputs()) out->outputs().push_back({map(o.value), o.into, o.check});
  return out;
}

}  // namespace brasa::ir
