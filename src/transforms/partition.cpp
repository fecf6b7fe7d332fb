#include "transforms/partition.h"

#include <algorithm>
#include <unordered_map>

#include "ir/copy.h"
#include "support/error.h"
#include "transforms/max_flow.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ir::Value;

// Work that the backward graph may repeat: point-wise arithmetic and movement, which fuse into their readers.
bool cheap(const Node& n) {
  const ops::Row& row = ops::row_of(n);
  return !row.costly && (row.is_pointwise() || row.view_rule || n.inputs().empty());
}

class Partitioner {
 public:
  Partitioner(const ir::Graph& joint, size_t inputs, size_t outputs, const ir::Facts& facts)
      : graph_(joint), inputs_(inputs), facts_(facts), forward_(graph_.nodes().size(), true) {
    for (size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ir::Output& o = graph_.outputs()[i];
      if (i < outputs)
        originals_.push_back(o);
      else if (o.check.empty())
        gradients_.push_back(o.value);
      else
        checks_.push_back(o);
    }
    for (size_t i = inputs; i < graph_.inputs().size(); ++i) forward_[graph_.inputs()[i].value.node->id] = false;
    for (const Node* n : graph_.nodes())
      n->for_each_input([&](Value v) {
        if (!forward_[v.node->id]) forward_[n->id] = false;
      });
  }

  Partition run() {
    Partition p;
    p.values = cut();
    build_forward(p, p.values);
    return p;
  }

 private:
  int64_t bytes(const Node& n) const {
    int64_t total = 0;
    for (const ir::Type& t : n.types) {
      int64_t numel = 1;
      for (ir::Expr e : t.shape) {
        int64_t size = e.is_constant() ? e.constant() : facts_.has_hint(e) ? facts_.hint(e) : 64;
        if (__builtin_mul_overflow(numel, std::max<int64_t>(size, 1), &numel)) return MaxFlow::kInfinite / 2;
      }
      total += numel * size_of(t.dtype);
    }
    return std::min(total, MaxFlow::kInfinite / 1024);
  }

  // Numbers whose equality decides a gradient, such as that of a maximum: computed again they may round in another way (a product and a
  // sum may be one operation), and none would be equal.
  std::vector<bool> compared() const {
    std::vector<bool> found(graph_.nodes().size());
    auto made = [](Value v) {  // below views
      while (v.node->op != ir::input_op() && ops::row_of(*v.node).view_rule) v = v.node->inputs()[0];
      return v;
    };
    auto is_number = [](Value v) { return v.node->op != ir::input_op() && v.node->inputs().empty(); };
    for (const Node* node : graph_.nodes()) {
      const std::string& name = node->op->name();
      if (!forward_[node->id] || (name != "prim::eq" && name != "prim::ne")) continue;
      Value a = made(node->inputs()[0]), b = made(node->inputs()[1]);
      if (a == b || !is_floating(ir::type_of(a).dtype) || is_number(a) || is_number(b)) continue;
      found[a.node->id] = found[b.node->id] = true;
    }
    return found;
  }

  // Each forward node is an edge in -> out whose capacity is what saving it costs. Flow comes in at inputs and at nodes
  // that must not be computed again, and leaves where the backward graph reads.
  std::vector<Value> cut() {
    size_t n = graph_.nodes().size();
    int source = static_cast<int>(2 * n), sink = source + 1;
    MaxFlow flow(sink + 1);
    std::vector<bool> free(n), read(n);
    for (size_t i = 0; i < inputs_; ++i) free[graph_.inputs()[i].value.node->id] = true;
    for (const ir::Output& o : originals_)
      if (o.check.empty()) free[o.value.node->id] = true;
    std::vector<bool> live(n);
    for (Value v : gradients_) live[v.node->id] = true;
    for (size_t i = n; i-- > 0;)
      if (live[i]) graph_.nodes()[i]->for_each_input([&](Value v) { live[v.node->id] = true; });
    for (Value v : gradients_)
      if (forward_[v.node->id]) read[v.node->id] = true;
    for (const Node* node : graph_.nodes()) {
      if (!live[node->id] || forward_[node->id]) continue;
      node->for_each_input([&](Value v) {
        if (forward_[v.node->id]) read[v.node->id] = true;
      });
    }
    std::vector<bool> compared = this->compared();
    for (const Node* node : graph_.nodes()) {
      if (!live[node->id] || !forward_[node->id]) continue;
      int in = static_cast<int>(2 * node->id), out = in + 1;
      // In units of 1/16 byte, so that a free value still counts a little against none at all.
      flow.edge(in, out, free[node->id] ? 1 : 16 * bytes(*node));
      if (node->op == ir::input_op() || !cheap(*node) || compared[node->id]) flow.edge(source, in, MaxFlow::kInfinite);
      if (read[node->id]) flow.edge(out, sink, MaxFlow::kInfinite);
      node->for_each_input([&](Value v) { flow.edge(static_cast<int>(2 * v.node->id + 1), in, MaxFlow::kInfinite); });
    }
    std::vector<bool> side = flow.source_side(source, sink);
    std::vector<Value> saved;
    for (Node* node : graph_.nodes()) {
      if (!live[node->id] || !forward_[node->id] || !side[2 * node->id] || side[2 * node->id + 1]) continue;
      for (uint32_t r = 0; r < node->types.size(); ++r)
        if (node->types.size() == 1 || used(*node, r, live)) saved.push_back(node->out(r));
    }
    return saved;
  }

  bool used(const Node& node, uint32_t result, const std::vector<bool>& live) const {
    // A gradient that depends on no cotangent may be the value itself.
    for (Value v : gradients_)
      if (v.node == &node && v.index == result) return true;
    for (const Node* n : graph_.nodes()) {
      if (!live[n->id]) continue;
      bool reads = false;
      n->for_each_input([&](Value v) { reads = reads || (v.node == &node && v.index == result); });
      if (reads) return true;
    }
    return false;
  }

  void build_forward(Partition& p, const std::vector<Value>& saved) {
    p.forward = std::make_unique<ir::Graph>(graph_.level());
    p.forward->name = graph_.name + " forward";
    ir::ValueMap map;
    for (size_t i = 0; i < inputs_; ++i) {
      const ir::Input& in = graph_.inputs()[i];
      map.set(in.value, p.forward->add_input(ir::type_of(in.value), in.name, in.strides, in.by_value));
    }
    for (const ir::Output& o : originals_) {
      Value v = ir::copy_value(*p.forward, o.value, map);
      p.forward->outputs().push_back({v, o.into, o.check});
    }
    for (Value v : saved) {
      int input = graph_.input_index(v);
      if (input >= 0) {
        p.saved.push_back({Saved::From::Input, input});
        continue;
      }
      auto it = std::find_if(originals_.begin(), originals_.end(),
                             [&](const ir::Output& o) { return o.value == v && o.check.empty() && o.into < 0; });
      if (it != originals_.end()) {
        p.saved.push_back({Saved::From::Output, static_cast<int>(it - originals_.begin())});
        continue;
      }
      p.saved.push_back({Saved::From::Intermediate, static_cast<int>(p.forward->outputs().size())});
      p.forward->add_output(ir::copy_value(*p.forward, v, map));
    }
    for (const ir::Output& o : checks_)
      if (forward_[o.value.node->id]) p.forward->add_check(ir::copy_value(*p.forward, o.value, map), o.check);
  }

  const ir::Graph& graph_;
  size_t inputs_;
  const ir::Facts& facts_;
  std::vector<bool> forward_;  // does not depend on a cotangent
  std::vector<ir::Output> originals_, checks_;
  std::vector<Value> gradients_;
};

// Symbols that a graph mentions but that no dimension or stride of its inputs is become inputs of their size.
std::vector<ir::Expr> add_sizes(ir::Graph& graph) {
  std::vector<ir::Expr> mentioned, bound, out;
  for (const Node* n : graph.nodes()) ir::each_size(*n, [&](ir::Expr e) { ir::collect_symbols(e, mentioned); });
  for (const ir::Input& in : graph.inputs()) {
    for (ir::Expr e : in.strides) ir::collect_symbols(e, mentioned);
    for (ir::Expr e : ir::type_of(in.value).shape) bound.push_back(e);
    for (ir::Expr e : in.strides) bound.push_back(e);
  }
  for (ir::Expr s : mentioned)
    if (std::find(bound.begin(), bound.end(), s) == bound.end()) {
      out.push_back(s);
      graph.add_input({DType::Bool, {s}, false}, str("size ", s), {ir::Expr(0)}, true);
    }
  return out;
}

}  // namespace

Partition partition(const ir::Graph& joint, size_t original_inputs, size_t original_outputs, const ir::Facts& facts) {
  return Partitioner(joint, original_inputs, original_outputs, facts).run();
}

BackwardGraph backward_graph(const ir::Graph& joint, const std::vector<Value>& saved,
                             const std::vector<Value>& gradients) {
  std::unordered_map<Value, size_t> place;
  for (size_t i = 0; i < saved.size(); ++i) place[saved[i]] = i;
  std::vector<bool> seen(joint.nodes().size()), read(saved.size()), inputs(joint.inputs().size());
  std::vector<Value> open = gradients;
  while (!open.empty()) {
    Value v = open.back();
    open.pop_back();
    if (auto it = place.find(v); it != place.end()) {
      read[it->second] = true;
    } else if (ir::is_input(v)) {
      inputs[joint.input_index(v)] = true;
    } else if (!seen[v.node->id]) {
      seen[v.node->id] = true;
      v.node->for_each_input([&](Value in) { open.push_back(in); });
    }
  }
  BackwardGraph out;
  out.graph = std::make_unique<ir::Graph>(joint.level());
  out.graph->name = joint.name + " backward";
  ir::ValueMap map;
  auto add = [&](Value v, std::string name) {
    int input = joint.input_index(v);
    const ir::Input* in = input >= 0 ? &joint.inputs()[input] : nullptr;
    map.set(v, out.graph->add_input(ir::type_of(v), std::move(name), in ? in->strides : std::vector<ir::Expr>(),
                                    in && in->by_value));
  };
  for (size_t i = 0; i < saved.size(); ++i) {
    if (!read[i]) continue;
    out.saved.push_back(i);
    add(saved[i], str("saved", i));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    out.inputs.push_back(i);
    add(joint.inputs()[i].value, joint.inputs()[i].name);
  }
  for (Value v : gradients) out.graph->add_output(ir::copy_value(*out.graph, v, map));
  out.sizes = add_sizes(*out.graph);
  return out;
}

}  // namespace brasa::transforms
