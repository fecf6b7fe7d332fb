#include "transforms/recompute.h"

#include <algorithm>

#include "ir/copy.h"
#include "ops/table.h"
#include "transforms/memory.h"

namespace brasa::transforms {
namespace {

using ir::Node;
using ir::Value;

class Recompute {
 public:
  Recompute(const ir::Graph& graph, const std::vector<bool>& forward, const Cut& cut)
      : graph_(graph),
        forward_(forward),
        again_(cut.again),
        out_(std::make_unique<ir::Graph>(graph.level())),
        late_(graph.nodes().size()) {
    out_->name = graph.name;
  }

  std::unique_ptr<ir::Graph> run() {
    ir::copy_inputs(*out_, graph_, first_);
    for (const Node* n : ir::live_nodes(graph_)) {
      if (n->op == ir::input_op()) continue;
      if (forward_[n->id]) {
        ir::copy_node(*out_, *n, first_);
        if (!n->inputs().empty()) late_[n->id] = n->id;
      } else {
        copy_backward(*n);
      }
    }
    for (const ir::Output& o : graph_.outputs()) out_->outputs().push_back({first_(o.value), o.into, o.check});
    return std::move(out_);
  }

 private:
  void copy_backward(const Node& n) {
    n.for_each_input([&](Value v) {
      if (!forward_[v.node->id]) pass(v);
    });
    ir::ValueMap operands;
    n.for_each_input([&](Value v) { operands.set(v, is_made_again(v) ? second(v) : first_(v)); });
    Node* copy = out_->add(n.op, ir::mapped(n.args, operands), n.types);
    for (uint32_t r = 0; r < n.types.size(); ++r) first_.set({const_cast<Node*>(&n), r}, copy->out(r));
    uint32_t latest = 0;
    n.for_each_input([&](Value v) { latest = std::max(latest, late_[v.node->id]); });
    late_[n.id] = latest + 1;
    pass(const_cast<Node&>(n).out());
  }

  // What waits waits for what is done last: derivatives of a function alone are there as soon as its values. Of products it is their operands,
  // which come before: a result that others read beside its conversion would be made in both types.
  void pass(Value v) {
    if (!is_made(v) || late_[v.node->id] < latest_ || ops::kind_of(*v.node) == ops::Kind::Dot) return;
    latest_ = late_[v.node->id];
    last_ = first_(v);
  }

  // A forward value, computed for the second time.
  Value second(Value v) {
    std::vector<Value> open{v};
    while (!open.empty()) {
      Value top = open.back();
      const Node& n = *top.node;
      bool ready = true;
      if (!second_.find(top))
        n.for_each_input([&](Value in) {
          if (!is_made_again(in) || second_.find(in)) return;
          open.push_back(in);
          ready = false;
        });
      if (!ready) continue;
      open.pop_back();
      if (!second_.find(top)) copy_again(n);
    }
    return second_(v);
  }

  // Inputs and constants are there; a node that reads nothing else reads an input later, so that it is not the one of the first time.
  void copy_again(const Node& n) {
    bool differs = false;
    n.for_each_input([&](Value in) { differs = differs || is_made_again(in) || is_kept(in); });
    ir::ValueMap operands;
    n.for_each_input([&](Value in) {
      if (is_kept(in) && !second_.find(in)) second_.set(in, later(first_(in)));
      bool waits = !differs && ir::is_input(in);
      operands.set(in, second_.find(in) ? second_(in) : waits ? later(first_(in)) : first_(in));
      differs = differs || waits;
    });
    Node* copy = out_->add(n.op, ir::mapped(n.args, operands), n.types);
    for (uint32_t r = 0; r < n.types.size(); ++r) second_.set({const_cast<Node*>(&n), r}, copy->out(r));
  }

  static bool is_made(Value v) { return !ir::is_input(v) && !v.node->inputs().empty(); }
  bool is_made_again(Value v) const { return is_made(v) && again_[v.node->id]; }
  bool is_kept(Value v) const { return is_made(v) && !again_[v.node->id]; }
  Value later(Value there) {
    if (!last_) return there;
    return out_->add(&ops::at("prim::later"), {ir::Arg(there), ir::Arg(last_)}, {ir::type_of(there)})->out();
  }

  const ir::Graph& graph_;
  const std::vector<bool>& forward_;
  const std::vector<bool>& again_;
  std::unique_ptr<ir::Graph> out_;
  ir::ValueMap first_, second_;
  std::vector<uint32_t>
      late_;  // by node: as high as the place of the last forward node that it depends on, and the steps from there
  uint32_t latest_ = 0;
  Value last_{};  // of the backward part, which is as late
};

}  // namespace

std::unique_ptr<ir::Graph> recompute(const ir::Graph& graph, const std::vector<bool>& forward, const ir::Facts& facts,
                                     const Keeping& keeping) {
  std::vector<Value> outputs, gradients;
  for (const ir::Output& o : graph.outputs())
    if (o.check.empty()) (forward[o.value.node->id] ? outputs : gradients).push_back(o.value);
  // Both parts are one graph, so what counts is all that lies in memory at once.
  Cut found = cut(graph, forward, outputs, gradients, facts, keeping,
                  [&](const Cut& c) { return peak_bytes(*Recompute(graph, forward, c).run(), facts); });
  bool any = std::any_of(graph.nodes().begin(), graph.nodes().end(),
                         [&](const Node* n) { return found.again[n->id] && !n->inputs().empty(); });
  return any ? Recompute(graph, forward, found).run() : nullptr;
}

}  // namespace brasa::transforms
