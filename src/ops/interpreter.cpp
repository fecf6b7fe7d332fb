#include "ops/interpreter.h"

#include "ops/decompose.h"
#include "support/error.h"

namespace brasa::ops {

std::unique_ptr<ir::Graph> specialised(const ir::Graph& graph, const std::function<int64_t(Expr)>& f) {
  auto out = std::make_unique<ir::Graph>(graph.level());
  auto sized = [&](std::vector<Expr> items) {
    for (Expr& e : items) e = Expr(f(e));
    return items;
  };
  ir::ValueMap map;
  for (const Node* n : graph.nodes()) {
    std::vector<Type> types = n->types;
    for (Type& t : types) t.shape = sized(t.shape);
    if (n->op == ir::input_op()) {
      const ir::Input& in = graph.inputs()[n->arg<Expr>(0).constant()];
      map.set(in.value, out->add_input(types[0], in.name, sized(in.strides)));
      continue;
    }
    Args args;
    for (const Arg& a : n->args) {
      if (auto* e = a.get_if<Expr>())
        args.push_back(Arg(Expr(f(*e))));
      else if (auto* list = a.get_if<std::vector<Expr>>())
        args.push_back(Arg(sized(*list)));
      else
        args.push_back(map(a));
    }
    Node* copy = out->add(n->op, std::move(args), std::move(types));
    for (uint32_t i = 0; i < n->types.size(); ++i) map.set({const_cast<Node*>(n), i}, copy->out(i));
  }
  for (const ir::Output& o : graph.outputs()) out->outputs().push_back({map(o.value), o.into, o.check});
  return out;
}

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
    if (!o.check.empty() && a.data[0] == std::byte{0}) fail_index(o.check);
    out.push_back(a);
  }
  return out;
}

}  // namespace brasa::ops
