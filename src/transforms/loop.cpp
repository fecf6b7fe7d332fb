#include "transforms/loop.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "ir/copy.h"
#include "ops/loop.h"
#include "ops/primitives/rules.h"
#include "support/error.h"
#include "transforms/bodies.h"
#include "transforms/tangent.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

namespace brasa::transforms {
namespace {

using ir::Expr;
using ir::Graph;
using ir::Node;
using ir::Value;
using ops::LoopNode;
using ops::LoopOperands;
using ops::Row;

// The part of a graph between some of its values and others, as a graph.
std::unique_ptr<Graph> part_of(const std::vector<Value>& from, const std::vector<Value>& to) {
  auto out = std::make_unique<Graph>();
  ir::ValueMap map;
  for (Value v : from) map.set(v, out->add_input(ir::type_of(v)));
  for (Value v : to) out->add_output(ir::copy_value(*out, v, map));
  return out;
}

// The backward pass of a loop. `joint_` is what one step does to cotangents, made of the body: its inputs are the body's, then the
// cotangents of the states that a step gives, then those of what else it gives.
class LoopBackward {
 public:
  LoopBackward(const Node& node, std::span<const Value> cts, const std::vector<bool>& needs)
      : n_(node), node_(const_cast<Node&>(node)), loop_(n_.loop()), cts_(cts), needs_(needs) {}

  std::vector<Value> run() {
    make_joint();
    place_inputs();
    back_.steps = n_.steps;
    back_.reverse = !n_.reverse;
    std::vector<Value> out(n_.operands.size());
    run_loop();
    for (size_t i = 0; i < n_.operands.size(); ++i) {
      if (!needs_[i]) continue;
      Value like = n_.operands[i];
      if (i < n_.carried)
        out[i] = ops::last_state(traces_[active_.at(i)], back_);
      else if (!gradient_[i])
        continue;
      else
        out[i] = i < n_.carried + n_.along ? stacked(gradient_[i]) : summed(gradient_[i]);
      out[i] = of_shape(out[i], ir::type_of(like).shape);
    }
    return out;
  }

 private:
  void make_joint() {
    std::unique_ptr<Graph> body = n_.body_outside();
    std::vector<bool> needs(body->inputs().size()), given;
    for (size_t i = 0; i < n_.operands.size(); ++i)
      needs[i] = has_tangent(n_.operands[i]) && (i < n_.carried || needs_[i]);
    size_t result = 0;
    for (const ir::Output& o : body->outputs()) {
      bool state = result < n_.carried;
      given.push_back(o.check.empty() && has_tangent(o.value) && (state || cts_[result]));
      if (!o.check.empty()) continue;
      if (given.back()) (state ? state_results_ : given_results_).push_back(result);
      ++result;
    }
    for (size_t i = 0; i < n_.carried; ++i)
      if (needs[i]) active_.emplace(i, active_.size());
    JointGraph j = joint(*body, ops::Builder::current().facts(), needs, given);
    joint_ = std::move(j.graph);
    for (size_t i = 0; i < n_.operands.size(); ++i) {
      int at = j.gradient_of[i];
      gradient_.push_back(at < 0 ? Value{} : joint_->outputs()[at].value);
    }
  }

  // What the joint graph's inputs are for all steps: `stacks_` has the items of each, `fixed_` what is the same in each.
  void place_inputs() {
    size_t i = 0;
    auto next = [&] { return joint_->inputs()[i++].value; };
    for (size_t k = 0; k < n_.carried; ++k)
      stacks_[next()] = ops::states_before(node_.out(static_cast<uint32_t>(k)), loop_);
    for (Value v : loop_.along) stacks_[next()] = v;
    for (Value v : loop_.others) fixed_[next()] = v;
    i = n_.body.inputs().size();  // behind those that only show sizes
    for (size_t k = 0; k < state_results_.size(); ++k) cotangents_.push_back(next());
    for (size_t r : given_results_) stacks_[next()] = cts_[r];
    place_results();
    const auto& nodes = joint_->nodes();
    varies_.resize(nodes.size());
    hangs_.resize(nodes.size());
    core_.resize(nodes.size());
    for (auto [v, all] : stacks_) varies_[v.node->id] = true;
    for (Value v : cotangents_) hangs_[v.node->id] = true;
    for (const Node* n : nodes)
      n->for_each_input([&](Value v) {
        if (varies_[v.node->id]) varies_[n->id] = true;
        if (hangs_[v.node->id]) hangs_[n->id] = true;
      });
  }

  // What the steps gave beside the states is not computed again. States may have been put into other sizes on their way: whether what they
  // are made of is read would hang on how sizes are spelled.
  void place_results() {
    uint32_t result = 0;
    for (size_t i = 0; i < n_.body.outputs().size(); ++i) {
      if (!n_.body.outputs()[i].check.empty()) continue;
      Value v = joint_->outputs()[i].value;
      uint32_t r = result++;
      if (r >= n_.carried && !ir::is_input(v) && has_tangent(v)) stacks_.emplace(v, node_.out(r));
    }
  }

  // Nodes on the way from the cotangents of states after a step to those before it.
  void find_core() {
    for (auto [state, k] : active_)
      if (gradient_[state]) core_[gradient_[state].node->id] = true;
    for (size_t id = core_.size(); id-- > 0;) {
      if (!core_[id]) continue;
      core_[id] = hangs_[id];
      if (core_[id]) joint_->nodes()[id]->for_each_input([&](Value v) { core_[v.node->id] = true; });
    }
  }

  // What costs nothing in a step: views of what is the same in each, and constants.
  static bool free_of_cost(const Node& n) {
    const Row& row = ops::row_of(n);
    return ops::is_leaf(row.kind) || ops::is_view(row.kind);
  }

  // Made in a step of what is read there, rather than for all steps at once to be read there itself.
  bool made_in_step(Value v) const {
    const Row& row = ops::row_of(*v.node);
    return free_of_cost(*v.node) || (varies_[v.node->id] && row.is_pointwise() && row.work == 1 && !row.costly);
  }

  // Where the part that starts at `to` begins: at what `ends` says, at inputs, at what the loop gave, and at what does not hang on cotangents
  // of states and is not made in a step.
  template <class F>
  std::vector<Value> beginnings(const std::vector<Value>& to, F ends) const {
    std::vector<Value> out, stack = to;
    std::unordered_set<Value> seen;
    while (!stack.empty()) {
      Value v = stack.back();
      stack.pop_back();
      if (!seen.insert(v).second) continue;
      if (ir::is_input(v) || stacks_.count(v) || ends(v) || (!hangs_[v.node->id] && !made_in_step(v)))
        out.push_back(v);
      else
        v.node->for_each_input([&](Value in) { stack.push_back(in); });
    }
    std::sort(out.begin(), out.end(),
              [](Value a, Value b) { return a.node->id != b.node->id ? a.node->id < b.node->id : a.index < b.index; });
    return out;
  }

  void run_loop() {
    if (active_.empty()) return;
    find_core();
    std::vector<Value> wanted,
        results;  // by the loop: cotangents of states before the step, then what is read behind it
    for (auto [state, k] : active_) wanted.push_back(gradient_[state]);
    for (Value v : read_behind()) results.push_back(v);
    std::vector<Value> to;
    for (Value v : wanted)
      if (v) to.push_back(v);
    to.insert(to.end(), results.begin(), results.end());
    std::vector<Value> from = beginnings(to, [](Value) { return false; });
    std::vector<Value> items, others;
    for (Value v : from) {
      if (std::find(cotangents_.begin(), cotangents_.end(), v) != cotangents_.end()) continue;
      (varies_[v.node->id] ? items : others).push_back(v);
    }
    // The cotangents of the traces join in where the states are.
    std::vector<size_t> joining;  // positions among the active states
    for (auto [state, k] : active_) {
      Value trace = cts_[state], like = n_.operands[state];
      back_.carried.push_back(trace ? ops::last_state(trace, loop_) : ops::zeros_like(like));
      if (!trace) continue;
      joining.push_back(k);
      back_.along.push_back(ops::states_before(trace, loop_));
    }
    for (Value v : items) back_.along.push_back(stacked(v));
    for (Value v : others) back_.others.push_back(fixed(v));

    std::vector<Value> order = cotangents_;
    order.insert(order.end(), items.begin(), items.end());
    order.insert(order.end(), others.begin(), others.end());
    std::unique_ptr<Graph> part = part_of(order, to);
    auto step = [&](std::span<const Value> carried, std::span<const Value> along, std::span<const Value> rest) {
      std::vector<Value> in(carried.begin(), carried.end());
      in.insert(in.end(), along.begin() + static_cast<std::ptrdiff_t>(joining.size()), along.end());
      in.insert(in.end(), rest.begin(), rest.end());
      std::vector<Value> made = ops::inlined(*part, in), out;
      size_t next = 0;
      for (size_t k = 0; k < wanted.size(); ++k) {
        Value ct = wanted[k] ? made[next++] : ops::zeros_like(carried[k]);
        out.push_back(of_shape(ct, ops::shape_of(carried[k])));
      }
      for (size_t k = 0; k < joining.size(); ++k) out[joining[k]] = plus(out[joining[k]], along[k]);
      out.insert(out.end(), made.begin() + static_cast<std::ptrdiff_t>(next), made.end());
      return out;
    };
    traces_ = ops::scan_loop(back_, step);
    for (size_t k = 0; k < results.size(); ++k) stacks_[results[k]] = traces_[active_.size() + k];
    for (size_t k = 0; k < cotangents_.size(); ++k) stacks_[cotangents_[k]] = ops::states_before(traces_[k], back_);
  }

  // Of what the loop computes: all that gradients which are computed behind it begin at.
  std::vector<Value> read_behind() {
    std::vector<Value> targets;
    for (size_t i = n_.carried; i < n_.operands.size(); ++i) {
      if (!needs_[i] || !gradient_[i]) continue;
      if (i < n_.carried + n_.along)
        targets.push_back(gradient_[i]);
      else
        each_term(gradient_[i], [&](Value v) { targets.push_back(v); });
    }
    std::vector<Value> out;
    for (Value v : beginnings(targets, [&](Value v) { return core_[v.node->id] && !ir::is_input(v); }))
      if (core_[v.node->id] && !ir::is_input(v)) out.push_back(v);
    return out;
  }

  // A value of the joint graph that is the same in each step.
  Value fixed(Value v) {
    if (auto it = fixed_.find(v); it != fixed_.end()) return it->second;
    std::vector<Value> from, outside;
    for (auto [in, there] : fixed_)
      if (ir::is_input(in)) {
        from.push_back(in);
        outside.push_back(there);
      }
    return fixed_[v] = ops::inlined(*part_of(from, {v}), outside)[0];
  }

  // All steps' items of a value of the joint graph, computed at once.
  Value stacked(Value v) {
    if (auto it = stacks_.find(v); it != stacks_.end()) return it->second;
    std::vector<Value> from, outside;
    std::vector<bool> mapped;
    for (auto [in, items] : stacks_) {
      from.push_back(in);
      outside.push_back(items);
      mapped.push_back(true);
    }
    for (auto [in, there] : fixed_) {
      from.push_back(in);
      outside.push_back(there);
      mapped.push_back(false);
    }
    std::unique_ptr<Graph> all = vmap(*part_of(from, {v}), ops::Builder::current().facts(), mapped, n_.steps);
    return stacks_[v] = ops::inlined(*all, outside)[0];
  }

  // A sum over the steps is taken at once where it is one of products or of sums: of the values that f is called with.
  template <class F>
  void each_term(Value v, F f) const {
    const Node& n = *v.node;
    switch (term(v)) {
      case Term::Move: return each_term(n.arg<Value>(0), f);
      case Term::Sum: each_term(n.arg<Value>(0), f); return each_term(n.arg<Value>(1), f);
      case Term::Reduction: return f(n.arg<Value>(0));
      case Term::Product: f(n.arg<Value>(0)); return f(n.arg<Value>(1));
      case Term::Value: return f(v);
    }
  }
  Value summed(Value v) {
    const Node& n = *v.node;
    auto shifted = [&](size_t arg) {
      std::vector<int64_t> dims{0};
      for (Expr d : n.arg<std::vector<Expr>>(arg)) dims.push_back(d.constant() + 1);
      return dims;
    };
    switch (term(v)) {
      case Term::Move: {
        ir::Args args = n.args;
        args[0] = summed(n.arg<Value>(0));
        return ops::Builder::current().call(ops::row_of(n), std::move(args))[0];
      }
      case Term::Sum: return plus(summed(n.arg<Value>(0)), summed(n.arg<Value>(1)));
      case Term::Reduction: return ops::prim::reduce(stacked(n.arg<Value>(0)), shifted(1), "add");
      case Term::Product:
        return ops::prim::dot_general(stacked(n.arg<Value>(0)), stacked(n.arg<Value>(1)), shifted(2), shifted(3), {},
                                      {});
      case Term::Value: return ops::prim::reduce(stacked(v), {0}, "add");
    }
    return {};
  }
  enum class Term { Move, Sum, Reduction, Product, Value };
  Term term(Value v) const {
    auto varies = [&](Value x) { return varies_[x.node->id] || hangs_[x.node->id]; };
    if (ir::is_input(v) || !varies(v)) return Term::Value;
    const Node& n = *v.node;
    switch (ops::row_of(n).kind) {
      case ops::Kind::Reshape:
      case ops::Kind::Transpose: return Term::Move;
      case ops::Kind::Pointwise:
        return ops::row_of(n).scalar == ops::ScalarOp::Add && varies(n.arg<Value>(0)) && varies(n.arg<Value>(1))
                   ? Term::Sum
                   : Term::Value;
      case ops::Kind::Reduce: return n.arg<std::string>(2) == "add" ? Term::Reduction : Term::Value;
      case ops::Kind::Dot:
        return varies(n.arg<Value>(0)) && varies(n.arg<Value>(1)) && n.arg<std::vector<Expr>>(4).empty() ? Term::Product
                                                                                                         : Term::Value;
      default: return Term::Value;
    }
  }

  const LoopNode n_;
  Node& node_;
  LoopOperands loop_, back_;
  std::span<const Value> cts_;
  const std::vector<bool>& needs_;
  std::unique_ptr<Graph> joint_;
  std::map<size_t, size_t> active_;                    // states with cotangents, and their positions among those
  std::vector<size_t> state_results_, given_results_;  // results whose cotangents the joint graph takes
  std::vector<Value> gradient_;                        // by operand: the joint graph's value, or none
  std::vector<Value> cotangents_;                      // of states after a step: inputs of the joint graph
  std::unordered_map<Value, Value> stacks_, fixed_;    // of values of the joint graph
  std::vector<bool> varies_, hangs_, core_;  // by node: differs from step to step; hangs on cotangents of states
  std::vector<Value> traces_;                // the loop's results
};

}  // namespace

std::vector<Value> loop_vjp(const Node& n, std::span<const Value> cts, const std::vector<bool>& needs) {
  return LoopBackward(n, cts, needs).run();
}

std::vector<Value> loop_jvp(const Node& node, std::span<const Value> tangents) {
  LoopNode n(node);
  std::unique_ptr<Graph> body = n.body_outside();
  LoopOperands loop = n.loop(), both = loop;
  std::vector<bool> moves(n.operands.size());
  auto mark = [&](const std::vector<Value>& from, std::vector<Value>& to, size_t first, bool state) {
    for (size_t i = 0; i < from.size(); ++i) {
      Value t = tangents[first + i];
      if (!has_tangent(from[i]) || (!t && !state)) continue;
      moves[first + i] = true;
      to.push_back(ops::or_zeros(t, from[i]));
    }
  };
  mark(loop.carried, both.carried, 0, true);
  mark(loop.along, both.along, n.carried, false);
  mark(loop.others, both.others, n.carried + n.along, false);
  std::vector<bool> result_moves(node.types.size());

  auto step = [&](std::span<const Value> carried, std::span<const Value> items, std::span<const Value> others) {
    std::vector<Value> in, moving;
    auto take = [&](std::span<const Value> all, size_t own) {
      in.insert(in.end(), all.begin(), all.begin() + static_cast<std::ptrdiff_t>(own));
      moving.insert(moving.end(), all.begin() + static_cast<std::ptrdiff_t>(own), all.end());
    };
    take(carried, n.carried);
    take(items, n.along);
    take(others, n.others());
    Pushed p = pushed(*body, in, moves, moving);
    std::vector<Value> out(p.results.begin(), p.results.begin() + static_cast<std::ptrdiff_t>(n.carried));
    for (size_t i = 0; i < p.results.size(); ++i) {
      result_moves[i] = i < n.carried ? moves[i] : static_cast<bool>(p.tangents[i]);
      if (result_moves[i]) out.push_back(i < n.carried ? ops::or_zeros(p.tangents[i], carried[i]) : p.tangents[i]);
    }
    return out;
  };
  std::vector<Value> all = ops::scan_loop(both, step), out;
  size_t next = n.carried;
  for (bool moved : result_moves) out.push_back(moved ? all[next++] : Value{});
  return out;
}

std::vector<Value> batched_loop(const Node& node, std::span<const Value> operands, const std::vector<bool>& mapped,
                                Expr count) {
  LoopNode n(node);
  // The body with the sizes that its operands have now, without the calls' dimension.
  std::unique_ptr<Graph> body = n.body_outside();
  std::vector<bool> in_body(body->inputs().size());
  for (size_t i = 0; i < operands.size(); ++i) in_body[i] = mapped[i] || i < n.carried;
  std::unique_ptr<Graph> all = vmap(*body, ops::Builder::current().facts(), in_body, count);
  auto swapped = [](Value v) { return ops::move_dims(v, {0}, {1}); };
  LoopOperands loop;
  loop.steps = n.steps;
  loop.reverse = n.reverse;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i < n.carried)
      loop.carried.push_back(mapped[i] ? operands[i] : ops::repeat_along(operands[i], 0, count));
    else if (i < n.carried + n.along)
      loop.along.push_back(mapped[i] ? swapped(operands[i]) : operands[i]);
    else
      loop.others.push_back(operands[i]);
  }
  auto step = [&](std::span<const Value> carried, std::span<const Value> items, std::span<const Value> others) {
    std::vector<Value> in;
    for (std::span<const Value> part : {carried, items, others}) in.insert(in.end(), part.begin(), part.end());
    return ops::inlined(*all, in);
  };
  std::vector<Value> out;
  for (Value v : ops::scan_loop(loop, step)) out.push_back(swapped(v));
  return out;
}

}  // namespace brasa::transforms
