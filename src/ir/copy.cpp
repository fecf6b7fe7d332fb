#include "ir/copy.h"

#include "support/error.h"

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

Value copy_value(Graph& to, Value v, ValueMap& map) {
  std::vector<Value> stack = {v};
  while (!stack.empty()) {
    Value top = stack.back();
    if (map.find(top)) {
      stack.pop_back();
      continue;
    }
    BRASA_ASSERT(top.node->op != input_op(), "a value is made of an input that the copy does not have");
    bool ready = true;
    top.node->for_each_input([&](Value in) {
      if (!map.find(in)) {
        stack.push_back(in);
        ready = false;
      }
    });
    if (!ready) continue;
    copy_node(to, *top.node, map);
    stack.pop_back();
  }
  return map(v);
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

namespace {

std::vector<Expr> sized(std::vector<Expr> items, const std::function<Expr(Expr)>& f) {
  for (Expr& e : items) e = f(e);
  return items;
}

}  // namespace

Args with_sizes(Args args, const std::function<Expr(Expr)>& f) {
  for (Arg& a : args)
    if (auto* e = a.get_if<Expr>())
      a = Arg(f(*e));
    else if (auto* list = a.get_if<std::vector<Expr>>())
      a = Arg(sized(*list, f));
  return args;
}

std::unique_ptr<Graph> with_sizes(const Graph& graph, const std::function<Expr(Expr)>& f) {
  ValueMap map;
  return with_sizes(graph, f, map);
}

std::unique_ptr<Graph> with_sizes(const Graph& graph, const std::function<Expr(Expr)>& f, ValueMap& map) {
  auto out = std::make_unique<Graph>(graph.level());
  out->name = graph.name;
  for (const Node* n : graph.nodes()) {
    std::vector<Type> types = n->types;
    for (Type& t : types) t.shape = sized(t.shape, f);
    if (n->op == input_op()) {
      const Input& in = graph.inputs()[n->arg<Expr>(0).constant()];
      map.set(in.value, out->add_input(types[0], in.name, sized(in.strides, f), in.by_value));
      continue;
    }
    Node* made = out->add(n->op, with_sizes(mapped(n->args, map), f), std::move(types));
    for (uint32_t i = 0; i < n->types.size(); ++i) map.set({const_cast<Node*>(n), i}, made->out(i));
  }
  for (const Output& o : graph.outputs()) out->outputs().push_back({map(o.value), o.into, o.check});
  return out;
}

void each_size(const Node& n, const std::function<void(Expr)>& f) {
  for (const Type& t : n.types)
    for (Expr e : t.shape) f(e);
  for (const Arg& a : n.args) {
    if (auto* e = a.get_if<Expr>()) f(*e);
    if (auto* list = a.get_if<std::vector<Expr>>())
      for (Expr e : *list) f(e);
  }
}

}  // namespace brasa::ir
