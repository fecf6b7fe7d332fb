#include "transforms/jvp.h"

#include <algorithm>
#include <unordered_map>

#include "ops/algebra.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "transforms/control_flow.h"
#include "transforms/tangent.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ir::Value;
using ops::Row;

// The node with other operands.
Value again(const Node& n, const std::vector<Value>& operands) {
  size_t next = 0;
  ir::Args args;
  for (const ir::Arg& a : n.args) {
    if (a.is<Value>()) {
      args.push_back(ir::Arg(operands[next++]));
    } else if (auto* list = a.get_if<std::vector<Value>>()) {
      std::vector<Value> items;
      for (Value v : *list) items.push_back(v ? operands[next++] : v);
      args.push_back(ir::Arg(std::move(items)));
    } else {
      args.push_back(a);
    }
  }
  return ops::Builder::current().call(ops::row_of(n), std::move(args))[0];
}

std::vector<Value> push(const Node& n, const std::vector<Value>& tangents) {
  const Row& row = ops::row_of(n);
  std::vector<Value> operands = n.inputs();
  if (row.kind == ops::Kind::Loop) return control_flow(row).jvp(n, tangents);
  if (row.jvp) return row.jvp(n, tangents);
  if (row.no_gradient) return std::vector<Value>(n.types.size());
  if (row.partial) {
    Value sum;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!tangents[i]) continue;
      if (Value partial = row.partial(i, operands, const_cast<Node&>(n).out()))
        sum = plus(sum, times(tangents[i], partial));
    }
    return {sum};
  }
  BRASA_CHECK(row.transposed, row.name(), " has no forward derivative");
  if (row.linear == ops::Linear::Together) {
    std::vector<Value> moved = operands;
    for (size_t i = 0; i < operands.size(); ++i)
      if (has_tangent(operands[i])) moved[i] = tangents[i] ? tangents[i] : ops::zeros_like(operands[i]);
    return {again(n, moved)};
  }
  Value sum;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (!tangents[i]) continue;
    std::vector<Value> moved = operands;
    moved[i] = tangents[i];
    sum = plus(sum, again(n, moved));
  }
  return {sum};
}

}  // namespace

std::vector<Value> pushforward(const std::vector<Value>& inputs, const std::vector<Value>& tangents,
                               const std::vector<Value>& outputs) {
  std::unordered_map<Value, Value> tangent;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (tangents[i] && has_tangent(inputs[i])) tangent[inputs[i]] = tangents[i];
  uint32_t end = 0;
  for (Value v : outputs)
    if (v) end = std::max(end, v.node->id + 1);
  auto of = [&](Value v) {
    auto it = tangent.find(v);
    return it == tangent.end() ? Value{} : it->second;
  };
  const auto& nodes = ops::Builder::current().graph().nodes();
  for (uint32_t id = 0; id < end; ++id) {
    Node* n = nodes[id];
    if (n->op == ir::input_op()) continue;
    std::vector<Value> mine;
    for (Value v : n->inputs()) mine.push_back(of(v));
    if (std::none_of(mine.begin(), mine.end(), [](Value v) { return static_cast<bool>(v); })) continue;
    std::vector<Value> found = push(*n, mine);
    for (uint32_t r = 0; r < found.size(); ++r) {
      if (!found[r] || !has_tangent(n->out(r))) continue;
      BRASA_ASSERT(ir::type_of(found[r]).dtype == n->types[r].dtype, n->op->name(), ": the tangent of ", n->types[r],
                   " is ", ir::type_of(found[r]));
      // Sizes that are equal by a fact may be spelled differently.
      tangent[n->out(r)] = ops::prim::reshape(found[r], n->types[r].shape);
    }
  }
  std::vector<Value> out;
  for (Value v : outputs) out.push_back(v ? of(v) : Value{});
  return out;
}

Forward jvp(const ir::Graph& graph, ir::Facts& facts, const std::vector<bool>& marked) {
  // Rows with a forward derivative of their own stay whole until then, and those through which no gradient flows: a detached value
  // has no tangent.
  Forward out;
  out.graph = ops::decompose(graph, facts, [](const Row& row) { return row.no_gradient || row.jvp; });
  std::vector<Value> inputs, tangents, outputs;
  for (size_t i = 0; i < graph.inputs().size(); ++i) {
    if (!marked[i]) continue;
    Value v = out.graph->inputs()[i].value;
    ir::Type t = ir::type_of(v);
    t.weak = false;
    inputs.push_back(v);
    tangents.push_back(out.graph->add_input(std::move(t), str("tangent", i)));
  }
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::Output& o = out.graph->outputs()[i];
    outputs.push_back(o.check.empty() ? o.value : Value{});
  }
  {
    ops::Builder builder(*out.graph, facts, detaches);
    for (Value t : pushforward(inputs, tangents, outputs)) {
      out.tangent_of.push_back(t ? static_cast<int>(out.graph->outputs().size()) : -1);
      if (t) out.graph->add_output(t);
    }
  }
  out.graph = ops::decompose(*out.graph, facts, detaches);
  return out;
}

}  // namespace brasa::transforms
