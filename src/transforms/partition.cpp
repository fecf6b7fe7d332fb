#include "transforms/partition.h"

#include <algorithm>
#include <unordered_map>

#include "ir/copy.h"
#include "support/error.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ir::Value;

class Partitioner {
 public:
  Partitioner(const ir::Graph& joint, size_t inputs, size_t outputs)
      : graph_(joint), inputs_(inputs), forward_(graph_.nodes().size(), true) {
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

  Partition run(const ir::Facts& facts, const Keeping& keeping) {
    std::vector<Value> outputs;
    for (const ir::Output& o : originals_)
      if (o.check.empty()) outputs.push_back(o.value);
    Partition p;
    p.values = cut(graph_, forward_, outputs, gradients_, facts, keeping).kept;
    build_forward(p, p.values);
    return p;
  }

 private:
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

Partition partition(const ir::Graph& joint, size_t original_inputs, size_t original_outputs, const ir::Facts& facts,
                    const Keeping& keeping) {
  return Partitioner(joint, original_inputs, original_outputs).run(facts, keeping);
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
