#include "ir/graph.h"

#include <algorithm>

#include "support/error.h"
#include "support/hash.h"
#include "support/lazy.h"

namespace brasa::ir {
namespace {

struct InputOp final : Op {
  InputOp() { schema.name = schema.base = "input"; }
};

}  // namespace

const Op* input_op() {
  static constinit Lazy<InputOp> op;
  return &*op;
}

std::string_view name(Level level) {
  switch (level) {
    case Level::Operators: return "operators";
    case Level::Primitives: return "primitives";
    case Level::Loops: return "loops";
  }
  return "";
}

void append_to(std::string& out, const Type& t) {
  out += short_name(t.dtype);
  append_to(out, t.shape);
  if (t.weak) out += '!';
}

std::vector<Value> Node::inputs() const {
  std::vector<Value> out;
  for_each_input([&](Value v) { out.push_back(v); });
  return out;
}

Value Graph::add_input(Type type, std::string name, std::vector<Expr> strides, bool by_value) {
  BRASA_ASSERT(strides.empty() || strides.size() == type.shape.size(), "one stride a dimension");
  // The position makes each input its own node, so inputs are never merged.
  Node* n = add(input_op(), {Arg(static_cast<int64_t>(inputs_.size()))}, {std::move(type)});
  inputs_.push_back({n->out(), std::move(name), std::move(strides), by_value});
  return n->out();
}

Node* Graph::add(const Op* op, Args args, std::vector<Type> types) {
  uint64_t h = reinterpret_cast<uint64_t>(op);
  for (const Arg& a : args) h = mix(h, a.hash());
  auto [first, last] = interned_.equal_range(h);
  for (auto it = first; it != last; ++it)
    if (it->second->op == op && it->second->args == args) return it->second;
  for (const Arg& a : args)
    a.for_each_value(
        [&](Value v) { BRASA_ASSERT(v.node->graph == this, op->name(), ": an operand of another graph"); });
  storage_.push_back({op, std::move(args), std::move(types), this, static_cast<uint32_t>(order_.size()), h});
  Node* n = &storage_.back();
  order_.push_back(n);
  interned_.emplace(h, n);
  return n;
}

int Graph::input_index(Value v) const {
  if (!is_input(v) || v.node->graph != this) return -1;
  return static_cast<int>(v.node->arg<Expr>(0).constant());
}

void Graph::add_check(Value value, std::string message) {
  for (const Output& o : outputs_)
    if (o.value == value && o.check == message) return;
  outputs_.push_back({value, -1, std::move(message)});
}

void add_operands(const Graph& graph, std::vector<bool>& nodes) {
  for (size_t i = nodes.size(); i-- > 0;)
    if (nodes[i]) graph.nodes()[i]->for_each_input([&](Value v) { nodes[v.node->id] = true; });
}

std::vector<Node*> live_nodes(const Graph& graph) {
  std::vector<bool> live(graph.nodes().size());
  for (const Output& o : graph.outputs()) live[o.value.node->id] = true;
  add_operands(graph, live);
  std::vector<Node*> out;
  for (Node* n : graph.nodes())
    if (live[n->id]) out.push_back(n);
  return out;
}

std::unordered_map<const Node*, int> count_uses(const Graph& graph) {
  std::unordered_map<const Node*, int> uses;
  for (Node* n : live_nodes(graph)) n->for_each_input([&](Value v) { ++uses[v.node]; });
  for (const Output& o : graph.outputs()) ++uses[o.value.node];
  return uses;
}

Value ValueMap::find(Value v) const {
  auto it = map_.find(v);
  return it == map_.end() ? Value{} : it->second;
}

Value ValueMap::operator()(Value v) const {
  Value r = find(v);
  BRASA_ASSERT(r, "a value was used before it was copied");
  return r;
}

Arg ValueMap::operator()(const Arg& a) const {
  if (auto* v = a.get_if<Value>()) return Arg((*this)(*v));
  if (auto* list = a.get_if<std::vector<Value>>()) {
    std::vector<Value> out;
    for (Value v : *list) out.push_back(v ? (*this)(v) : Value{});
    return Arg(std::move(out));
  }
  return a;
}

const std::vector<Expr>& strides_of(const Graph& graph, Value v) {
  static constinit Lazy<std::vector<Expr>> none;
  int i = graph.input_index(v);
  return i >= 0 ? graph.inputs()[i].strides : *none;
}

std::vector<Expr> contiguous_strides(const Shape& shape) {
  std::vector<Expr> strides(shape.size());
  Expr run(1);
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = run;
    // As in PyTorch, a dimension of size 0 or 1 does not shrink the strides of the outer ones.
    run = run * (shape[i].is(0) ? Expr(1) : shape[i]);
  }
  return strides;
}

}  // namespace brasa::ir
