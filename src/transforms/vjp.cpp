#include "transforms/vjp.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "ir/copy.h"
#include "ir/reads.h"
#include "ops/bodies.h"
#include "ops/complex.h"
#include "ops/decompose.h"
#include "ops/vectors.h"
#include "support/error.h"
#include "transforms/control_flow.h"
#include "transforms/tangent.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ir::Value;
using ops::Row;

// The cotangents of a node's operands from those of its results, by the row's one description of the derivative.
std::vector<Value> pull(const Node& n, const std::vector<Value>& cts, const std::vector<bool>& needs) {
  const Row& row = ops::row_of(n);
  std::vector<Value> inputs = n.inputs(), out(inputs.size());
  if (row.kind == ops::Kind::Loop) return control_flow(row).vjp(n, cts, needs);
  if (row.vjp) return row.vjp(n, cts, needs);
  if (row.no_gradient) return out;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!needs[i] || !cts[0]) continue;
    if (row.partial) {
      Value partial = row.partial(i, inputs, const_cast<Node&>(n).out());
      if (partial) out[i] = times(cts[0], ops::conj(partial));
    } else {
      BRASA_CHECK(row.transposed, row.name(), " has no derivative");
      out[i] = row.transposed(i, n, cts[0]);
    }
  }
  return out;
}

}  // namespace

bool has_own_derivative(const Row& row) { return static_cast<bool>(row.vjp) || row.no_gradient; }

std::vector<Value> pullback(const std::vector<Value>& outputs, const std::vector<Value>& cts,
                            const std::vector<Value>& inputs) {
  std::unordered_map<Value, Value> cotangent;
  uint32_t last = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!cts[i] || !has_tangent(outputs[i])) continue;
    Value& ct = cotangent[outputs[i]];
    ct = plus(ct, cts[i]);
    last = std::max(last, outputs[i].node->id + 1);
  }
  // Only what lies between the inputs and the outputs matters.
  const auto& nodes = ops::Builder::current().graph().nodes();
  std::vector<bool> depends(last);
  for (Value v : inputs)
    if (v.node->id < last && has_tangent(v)) depends[v.node->id] = true;
  for (uint32_t id = 0; id < last; ++id)
    nodes[id]->for_each_input([&](Value v) {
      if (depends[v.node->id] && has_tangent(v)) depends[id] = true;
    });
  std::vector<bool> is_target(last);
  for (Value v : inputs)
    if (v.node->id < last) is_target[v.node->id] = true;

  for (uint32_t id = last; id-- > 0;) {
    if (!depends[id]) continue;
    const Node& n = *nodes[id];
    std::vector<Value> node_cts;
    bool any = false;
    for (uint32_t r = 0; r < n.types.size(); ++r) {
      auto it = cotangent.find({const_cast<Node*>(&n), r});
      node_cts.push_back(it == cotangent.end() ? Value{} : it->second);
      any = any || node_cts.back();
    }
    if (!any || n.op == ir::input_op()) continue;
    std::vector<Value> operands = n.inputs();
    std::vector<bool> needs;
    for (Value v : operands) needs.push_back(depends[v.node->id] && has_tangent(v));
    if (std::none_of(needs.begin(), needs.end(), [](bool b) { return b; })) continue;
    std::vector<Value> back = pull(n, node_cts, needs);
    BRASA_ASSERT(back.size() == operands.size(), n.op->name(), ": one cotangent an operand");
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!needs[i] || !back[i]) continue;
      BRASA_ASSERT(ir::type_of(back[i]).dtype == ir::type_of(operands[i]).dtype, n.op->name(),
                   ": cotangent of operand ", i, " is ", ir::type_of(back[i]), " for ", ir::type_of(operands[i]));
      Value& ct = cotangent[operands[i]];
      ct = plus(ct, of_shape(back[i], ir::type_of(operands[i]).shape));
    }
  }
  std::vector<Value> out;
  for (Value v : inputs) {
    auto it = cotangent.find(v);
    out.push_back(it == cotangent.end() || !depends.size() ? Value{} : it->second);
  }
  return out;
}

bool has_published_derivative(Value v) {
  return v.node->op != ir::input_op() && ops::row_of(*v.node).vjp && v.node->op->name().starts_with("aten::");
}

JointGraph joint(const ir::Graph& graph, ir::Facts& facts, const std::vector<bool>& needs,
                 const std::vector<bool>& has_cotangent) {
  std::unique_ptr<ir::Graph> whole = ops::decompose(graph, facts, has_own_derivative, ops::Whole::AsTarget);
  size_t inputs = graph.inputs().size(), outputs = graph.outputs().size();
  std::vector<Value> results, cts, targets;
  std::vector<size_t> target_of;
  for (size_t i = 0; i < inputs; ++i)
    if (needs[i]) {
      targets.push_back(whole->inputs()[i].value);
      target_of.push_back(i);
    }
  JointGraph out;
  out.gradient_of.assign(inputs, -1);
  for (size_t i = 0; i < outputs; ++i) out.published.push_back(has_published_derivative(whole->outputs()[i].value));
  {
    ops::Builder builder(*whole, facts, has_own_derivative);
    for (size_t i = 0; i < outputs; ++i) {
      const ir::Output& o = graph.outputs()[i];
      if (!o.check.empty() || !has_cotangent[i]) continue;
      Value result = whole->outputs()[i].value;
      results.push_back(result);
      cts.push_back(whole->add_input(ir::type_of(result), str("cotangent", i)));
    }
    std::vector<Value> gradients = pullback(results, cts, targets);
    for (size_t k = 0; k < gradients.size(); ++k) {
      if (!gradients[k]) continue;
      out.gradient_of[target_of[k]] = static_cast<int>(whole->outputs().size());
      whole->add_output(gradients[k]);
    }
  }
  // The derivative may in turn have used rows that are kept whole; the joint graph is primitives. Expansion keeps the
  // outputs' order and adds checks behind them.
  auto keep = [](const ops::Row& row) { return row.is_primitive() || detaches(row); };
  out.graph = ops::decompose(*whole, facts, keep, ops::Whole::AsTarget);
  return out;
}

Value of_shape(Value v, const ir::Shape& shape) {
  return ir::type_of(v).shape == shape ? v : ops::prim::reshape(v, shape);
}

namespace {
Value unshaped(Value v) {
  while (ops::kind_of(*v.node) == ops::Kind::Reshape) v = v.node->arg<Value>(0);
  return v;
}
}  // namespace

bool is_plain_arithmetic(Value result) {
  const ir::Node& n = *unshaped(result).node;
  ops::ScalarOp op = ops::kind_of(n) == ops::Kind::Pointwise ? ops::row_of(n).scalar : ops::ScalarOp::None;
  return op == ops::ScalarOp::Add || op == ops::ScalarOp::Sub || op == ops::ScalarOp::Mul || op == ops::ScalarOp::Div;
}

namespace {

// The results that follow from values of a factorisation whose vectors nobody reads: it was asked for values alone, and rounds them
// otherwise than beside the vectors that the derivative needs. What is compared with them must be made again, too.
std::vector<bool> rounded_otherwise(const ir::Graph& graph) {
  std::vector<ir::Node*> live = ir::live_nodes(graph);
  auto asks_for_vectors = [](const ir::Node* n) { return ops::with_vectors(*n).value_or(false); };
  if (std::none_of(live.begin(), live.end(), asks_for_vectors)) return std::vector<bool>(graph.outputs().size());
  const std::unordered_set<Value> read = ir::read_values(graph);
  std::unordered_set<const ir::Node*> follows, values;
  for (ir::Node* n : live) {
    bool all = true;
    for (uint32_t r = 0; r < n->types.size(); ++r) all = all && read.count(n->out(r));
    if (!all && asks_for_vectors(n)) values.insert(n);
    n->for_each_input([&](Value v) {
      if (values.count(v.node) || follows.count(v.node)) follows.insert(n);
    });
  }
  std::vector<bool> out;
  for (const ir::Output& o : graph.outputs()) out.push_back(follows.count(o.value.node) > 0);
  return out;
}

// Sums, products and quotients of elements, which PyTorch's nodes do not keep, so that a program may write them (`norm(x).relu_()`,
// `(x / y).masked_fill_(…)`): made again instead of read. What follows from a sum or another whole and is smaller than the operands, as a
// mean, costs too much to make again. So does what an operator's own derivative is written with, as that of softmax. By result of the graph
// with so many inputs.
std::vector<bool> plain_arithmetic(const JointGraph& j, size_t inputs) {
  const ir::Graph& joint = *j.graph;
  std::unordered_set<const ir::Node*> follow;
  for (ir::Node* n : ir::live_nodes(joint)) {
    ops::Kind k = ops::kind_of(*n);
    bool by_element = k == ops::Kind::Input || k == ops::Kind::Pointwise || ops::is_leaf(k) || ops::is_view(k);
    bool follows = !by_element;
    n->for_each_input([&](Value v) { follows = follows || follow.count(v.node); });
    if (follows) follow.insert(n);
  }
  auto is_large = [&](Value v) {
    return std::any_of(joint.inputs().begin(), joint.inputs().begin() + static_cast<int64_t>(inputs),
                       [&](const auto& in) { return ir::type_of(in.value).numel() == ir::type_of(v).numel(); });
  };
  std::vector<bool> out;
  for (size_t i = 0; i < j.published.size(); ++i) {
    Value result = joint.outputs()[i].value, v = unshaped(result);
    out.push_back(is_plain_arithmetic(result) && !j.published[i] && (!follow.count(v.node) || is_large(result)));
  }
  return out;
}

// By node: whether one of the graph's first outputs that `marked` marks depends on it.
std::vector<bool> read_by(const ir::Graph& graph, const std::vector<bool>& marked) {
  std::vector<bool> read(graph.nodes().size());
  for (size_t k = 0; k < marked.size(); ++k)
    if (marked[k] && graph.outputs()[k].check.empty()) read[graph.outputs()[k].value.node->id] = true;
  for (size_t id = read.size(); id-- > 0;)
    if (read[id]) graph.nodes()[id]->for_each_input([&](Value v) { read[v.node->id] = true; });
  return read;
}

// A cotangent has the sizes of its result, which are other expressions.
void learn_equal(ir::Facts& facts, const ir::Shape& a, const ir::Shape& b) {
  for (size_t d = 0; a.size() == b.size() && d < a.size(); ++d)
    if (facts.has_hint(a[d]) && facts.has_hint(b[d])) facts.equal(a[d], b[d]);
}

}  // namespace

std::vector<bool> flows(const ir::Graph& primitives, const std::vector<bool>& given, bool of_derivative) {
  std::vector<bool> others = given, out;
  others.flip();
  std::vector<bool> read = read_by(primitives, given), elsewhere = read_by(primitives, others);
  auto reads = [&](const std::vector<bool>& by) {
    return std::any_of(primitives.inputs().begin(), primitives.inputs().end(),
                       [&](const ir::Input& in) { return by[in.value.node->id]; });
  };
  // What is made of nothing, as the gradient of what was filled, came from all that would have led to it.
  bool of_nothing = false;
  for (size_t k = 0; k < given.size(); ++k) {
    std::vector<bool> alone(given.size());
    alone[k] = given[k];
    of_nothing = of_nothing || (given[k] && !reads(read_by(primitives, alone)));
  }
  for (const auto& in : primitives.inputs()) {
    uint32_t id = in.value.node->id;
    out.push_back(read[id] || of_nothing || !(of_derivative || elsewhere[id]));
  }
  return out;
}

std::vector<Value> flowing(const ir::Graph& graph, const std::vector<bool>& needs, std::vector<bool> given,
                           std::span<const Value> inputs, std::span<const Value> cts, const std::vector<Value>& results,
                           bool of_derivative) {
  ops::Builder& target = ops::Builder::current();
  given.resize(graph.outputs().size());
  JointGraph j = joint(graph, target.facts(), needs, given);
  ir::ValueMap map;
  for (size_t i = 0; i < j.graph->inputs().size(); ++i) {
    Value in = j.graph->inputs()[i].value, v = i < inputs.size() ? inputs[i] : cts[i - inputs.size()];
    if (i >= inputs.size()) learn_equal(target.facts(), ir::type_of(v).shape, ir::type_of(in).shape);
    map.set(in, of_shape(v, ir::type_of(in).shape));
  }
  std::unordered_map<Value, Value> known;
  std::vector<bool> rounded, plain;
  if (!results.empty()) {
    rounded = rounded_otherwise(graph);
    plain = plain_arithmetic(j, inputs.size());
  }
  for (size_t k = 0; k < results.size(); ++k)
    for (Value v = j.graph->outputs()[k].value; results[k] && !rounded[k] && !plain[k] && !ir::is_input(v);
         v = v.node->arg<Value>(0)) {
      known.emplace(v, results[k]);
      if (ops::kind_of(*v.node) != ops::Kind::Reshape) break;
    }
  for (ir::Node* node : ir::live_nodes(*j.graph)) {
    if (node->op == ir::input_op()) continue;
    ops::add_again(*node, map);
    for (uint32_t r = 0; r < node->types.size(); ++r) {
      auto it = known.find(node->out(r));
      if (it == known.end()) continue;
      const ir::Type &given_type = ir::type_of(it->second), &type = ir::type_of(map(node->out(r)));
      if (given_type.dtype == type.dtype && given_type.weak == type.weak)
        map.set(node->out(r), of_shape(it->second, type.shape));
    }
  }
  std::vector<Value> out;
  std::vector<bool> flow = flows(*j.graph, given, of_derivative);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!needs[i]) continue;
    int at = j.gradient_of[i];
    out.push_back(at >= 0 ? map(j.graph->outputs()[at].value) : flow[i] ? ops::zeros_like(inputs[i]) : Value{});
  }
  return out;
}

std::vector<Value> derivative(const ir::Graph& graph, const std::vector<bool>& needs, std::vector<bool> given,
                              std::span<const Value> inputs, std::span<const Value> cts,
                              const std::vector<Value>& results) {
  std::vector<Value> out = flowing(graph, needs, std::move(given), inputs, cts, results, false);
  for (size_t i = 0, k = 0; i < inputs.size(); ++i)
    if (needs[i] && !out[k++]) out[k - 1] = ops::zeros_like(inputs[i]);
  return out;
}

}  // namespace brasa::transforms
