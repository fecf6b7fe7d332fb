#include <algorithm>
#include <map>

#include "capture/joint.h"
#include "capture/replay.h"
#include "ops/algebra.h"
#include "ops/builder.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "support/log.h"
#include "tensor/autograd/view_nodes.h"
#include "transforms/derived.h"

// The joint graph of a segment: the derivative of each node that gradients flow through is a row derived from the row of its event,
// with that event's arguments.
namespace brasa::capture {
namespace {

using autograd::NodeAccess;
using ir::Value;

// A cotangent and the number that it is one of.
struct Cotangent {
  Value value;
  Number number;
};

constexpr auto kNone = static_cast<size_t>(-1);

class Derivation {
 public:
  Derivation(const Trace& trace, const Binding& binding, std::span<const RecordedNode> recorded,
             const GradientFlow& flow)
      : trace_(trace), recorded_(recorded), flow_(flow), body_(trace.body()), facts_(binding.symbols) {
    steps_.resize(recorded.size());
    for (const GradientFlow::Step& s : flow.steps) steps_[s.node] = &s;
    for (size_t i = 0; i < flow.slots.size(); ++i) roots_[{node_of(flow.slots[i].root), flow.slots[i].result}] = i;
    passed_.resize(flow.views.size());
    for (size_t i = 0; i < flow.views.size(); ++i) views_[flow.views[i].node] = static_cast<int32_t>(i);
    for (const Event& e : trace.events) {
      for (const ir::Fact& f : e.facts) facts_.equal(f.left, f.right);
      for (uint32_t r = 0; r < e.count; ++r) event_of_.push_back(&e);
    }
  }

  std::shared_ptr<const JointSegment> run() {
    auto joint = std::make_shared<JointSegment>();
    joint->key = flow_.key;
    joint->trace = trace_.copy();
    joint->inputs = body_.graph->inputs().size();
    ops::Builder builder(*body_.graph, facts_);
    for (const GradientFlow::Slot& s : flow_.slots) {
      joint->roots.push_back(s.number);
      Value ct = body_.graph->add_input(trace_.types[s.number], str("cotangent", joint->roots.size() - 1));
      arrived_[{node_of(s.root), s.result}].push_back({ct, s.number});
    }
    gradients_.resize(flow_.leaves.size());
    // Later nodes first: edges lead to earlier ones.
    std::vector<const GradientFlow::Step*> steps;
    for (const GradientFlow::Step& s : flow_.steps) steps.push_back(&s);
    std::sort(steps.begin(), steps.end(), [](auto* a, auto* b) { return a->node > b->node; });
    for (const GradientFlow::Step* s : steps) {
      if (recorded_[s->node].results.empty())
        view(*s);
      else if (auto node = recorded_[s->node].node.lock(); NodeAccess::inner(*node))
        write(*s, static_cast<const autograd::CopySlices&>(*node));
      else
        call(*s);
      if (!recorded_[s->node].results.empty()) sources_.emplace(recorded_[s->node].event, sources_of(*s));
    }
    joint->gradients = std::move(gradients_);
    joint->sources = std::move(sources_);
    joint->views = std::move(passed_);
    joint->replayed = inputs_of_replay(*joint);
    joint->reached.assign(flow_.leaves.size(), std::vector<bool>(flow_.slots.size()));
    joint->inside.resize(flow_.slots.size());
    std::vector<std::vector<bool>> below;
    for (size_t slot = 0; slot < flow_.slots.size(); ++slot) below.push_back(find_reached(*joint, slot));
    joint->spends.assign(below.size(), std::vector<bool>(below.size()));
    for (size_t a = 0; a < below.size(); ++a)
      for (size_t b = a; b < below.size(); ++b) joint->spends[a][b] = joint->spends[b][a] = share(below[a], below[b]);
    joint->values = std::move(body_.values);
    joint->graph = std::move(body_.graph);
    joint->conditions = program::Conditions(facts_.facts());
    return joint;
  }

 private:
  uint32_t node_of(size_t root) const {
    for (const GradientFlow::Step& s : flow_.steps)
      if (recorded_[s.node].node.lock() == flow_.roots[root]) return s.node;
    fail_internal("a root is no recorded node");
  }

  // What lies below a slot, by node.
  std::vector<bool> find_reached(JointSegment& joint, size_t slot) const {
    std::vector<bool> seen(recorded_.size());
    std::vector<uint32_t> open{node_of(flow_.slots[slot].root)};
    while (!open.empty()) {
      uint32_t node = open.back();
      open.pop_back();
      if (seen[node]) continue;
      seen[node] = true;
      for (const GradientFlow::Target& to : step_of(static_cast<int32_t>(node)).targets) {
        if (to.leaf >= 0) joint.reached[to.leaf][slot] = true;
        if (auto it = roots_.find({static_cast<uint32_t>(to.node), to.result}); to.node >= 0 && it != roots_.end())
          joint.inside[it->second] = true;
        if (to.node >= 0) open.push_back(static_cast<uint32_t>(to.node));
      }
    }
    return seen;
  }

  // Whether a node of both keeps something for its backward.
  bool share(const std::vector<bool>& a, const std::vector<bool>& b) {
    for (const GradientFlow::Step& s : flow_.steps)
      if (a[s.node] && b[s.node] && keeps(s)) return true;
    return false;
  }

  bool keeps(const GradientFlow::Step& s) {
    if (recorded_[s.node].results.empty()) return false;
    auto [it, fresh] = keeps_.try_emplace(s.node, true);
    if (fresh && !NodeAccess::inner(*recorded_[s.node].node.lock())) it->second = reads_operands(s);
    return it->second;
  }

  // Whether a call's derivative is computed from its operands.
  bool reads_operands(const GradientFlow::Step& s) const {
    const Event& e = trace_.events.at(recorded_[s.node].event);
    ir::Graph graph(ir::Level::Operators);
    std::unordered_map<uint32_t, Value> operands;
    ir::Args args = mapped_args(e, [&](Value v) {
      if (is_argument(v)) return graph.add_input({trace_.arguments[v.index].dtype, {}, true});
      if (v.index == 0) return Value{};
      auto [it, fresh] = operands.try_emplace(v.index);
      if (fresh) it->second = graph.add_input(trace_.types.at(v.index - 1));
      return it->second;
    });
    std::vector<Value> cts;
    for (uint32_t r = 0; r < e.count; ++r) cts.push_back(graph.add_input(trace_.types.at(e.first + r)));
    args.push_back(ir::Arg(std::vector<Value>(e.count)));
    args.push_back(ir::Arg(cts));
    ir::Facts facts = facts_;
    ops::Builder builder(graph, facts);
    for (Value v :
         builder.record(transforms::vjp_row(*e.row, needs_of(s), std::vector<bool>(e.count, true)), std::move(args)))
      if (v) graph.add_output(v);
    std::unique_ptr<ir::Graph> primitives = ops::decompose(graph, facts);
    std::vector<ir::Node*> live = ir::live_nodes(*primitives);
    return std::any_of(operands.begin(), operands.end(), [&](const auto& operand) {
      Value in = primitives->inputs()[graph.input_index(operand.second)].value;
      return std::find(live.begin(), live.end(), in.node) != live.end();
    });
  }

  static std::vector<bool> needs_of(const GradientFlow::Step& s) {
    std::vector<bool> needs;
    for (const GradientFlow::Target& t : s.targets) needs.push_back(t.flows());
    return needs;
  }

  // A write into a view takes its target's gradient from the view's base.
  std::vector<JointSegment::Source> sources_of(const GradientFlow::Step& s) {
    auto node = recorded_[s.node].node.lock();
    size_t self = NodeAccess::inner(*node) ? static_cast<const autograd::CopySlices&>(*node).self_edge() : kNone;
    std::vector<Number> numbers = operands(trace_.events.at(recorded_[s.node].event));
    std::vector<JointSegment::Source> out;
    for (size_t i = 0; i < s.targets.size(); ++i) {
      JointSegment::Source& source = out.emplace_back();
      const GradientFlow::Target* to = &s.targets[i];
      source.flows = to->flows();
      if (!source.flows || i >= numbers.size()) continue;
      source.at = numbers[i];
      if (i == self) {
        while (event_of_.at(source.at)->view) source.at = operands(*event_of_[source.at]).at(0);
        set_end(source, *to);
        continue;
      }
      while (to->node >= 0 && recorded_[to->node].results.empty()) {
        if (auto it = views_.find(static_cast<uint32_t>(to->node)); it != views_.end()) {
          passed_.at(it->second) = true;
          if (source.view < 0) source.view_at = source.at;
          if (source.view < 0) source.view = it->second;
        }
        if (const Event* e = view_event(to->node, source.at)) source.at = operands(*e).at(0);
        to = &step_of(to->node).targets.at(0);
      }
      set_end(source, *to);
    }
    return out;
  }

  const GradientFlow::Step& step_of(int32_t node) const { return *steps_.at(static_cast<size_t>(node)); }

  // The gradient goes to this target.
  void set_end(JointSegment::Source& source, const GradientFlow::Target& to) const {
    source.leaf = to.leaf;
    if (auto it = roots_.find({static_cast<uint32_t>(to.node), to.result}); to.node >= 0 && it != roots_.end())
      source.root = static_cast<int32_t>(it->second);
  }

  // The event of a view's node that gave this number. A read that needed no movement, because the view is all of its storage, has none.
  const Event* view_event(uint32_t node, Number number) const {
    auto view = recorded_[node].node.lock();
    const Event& e = *event_of_.at(number);
    return e.view && e.row == &static_cast<const autograd::ViewNode&>(*view).row() ? &e : nullptr;
  }

  // Cotangents of an event's operands that `needs` marks.
  std::vector<Value> pull(const Event& e, const std::vector<bool>& needs, const std::vector<Value>& cts) {
    std::vector<bool> given;
    for (Value ct : cts) given.push_back(static_cast<bool>(ct));
    ir::Args args = mapped_args(e, body_);
    args.push_back(ir::Arg(std::vector<Value>(cts.size())));
    args.push_back(ir::Arg(cts));
    return ops::Builder::current().record(transforms::vjp_row(*e.row, needs, given), std::move(args));
  }

  static std::vector<Number> operands(const Event& e) {
    std::vector<Number> out;
    each_operand(e, [&](Number n) { out.push_back(n); });
    return out;
  }

  // Of an operand that is the only one to get a cotangent.
  Cotangent pull_operand(const Event& e, size_t operand, const Cotangent& ct) {
    std::vector<Number> from = operands(e);
    std::vector<bool> needs(from.size());
    needs.at(operand) = true;
    std::vector<Value> cts(e.count);
    cts.at(ct.number - e.first) = ct.value;
    return {pull(e, needs, cts).at(0), from[operand]};
  }

  // Through what dispatch put between a call and its result (conversions), and views.
  Cotangent pull_to(Cotangent ct, Number number) {
    while (ct.number != number) {
      const Event& e = *event_of_.at(ct.number);
      BRASA_CHECK(e.row && (e.view || e.row->is_primitive()), "a gradient passes ", e.row ? e.row->name() : "an input");
      ct = pull_operand(e, 0, ct);
    }
    return ct;
  }

  static Value sum(Value a, Value b) {
    return a && b ? ops::Builder::current().record(ops::at("aten::add.Tensor"), {a, b})[0] : a ? a : b;
  }

  void send(const GradientFlow::Target& to, const Cotangent& ct) {
    if (to.leaf >= 0) gradients_[to.leaf] = sum(gradients_[to.leaf], ct.value);
    if (to.leaf >= 0 || to.node < 0) return;
    // One for each number: each goes its own way back, and two of one number through every write would double with each.
    std::vector<Cotangent>& all = arrived_[{static_cast<uint32_t>(to.node), to.result}];
    auto same = std::find_if(all.begin(), all.end(), [&](const Cotangent& c) { return c.number == ct.number; });
    if (same == all.end())
      all.push_back(ct);
    else
      same->value = sum(same->value, ct.value);
  }

  std::vector<Cotangent> arrived(uint32_t node, uint32_t result) {
    auto it = arrived_.find({node, result});
    return it == arrived_.end() ? std::vector<Cotangent>() : std::move(it->second);
  }

  void view(const GradientFlow::Step& s) {
    for (const Cotangent& ct : arrived(s.node, 0)) {
      const Event* e = view_event(s.node, ct.number);
      send(s.targets.at(0), e ? pull_operand(*e, 0, ct) : ct);
    }
  }

  // The cotangents of a recorded call's results.
  std::vector<Value> results_of(uint32_t node, const Event& e) {
    std::vector<Value> cts(e.count);
    std::span<const Number> results = recorded_[node].results;
    for (uint32_t r = 0; r < results.size(); ++r)
      for (const Cotangent& ct : arrived(node, r)) cts.at(r) = sum(cts[r], pull_to(ct, e.first + r).value);
    return cts;
  }

  void call(const GradientFlow::Step& s) {
    const Event& e = trace_.events.at(recorded_[s.node].event);
    send_operands(s, e, results_of(s.node, e), kNone, kNoNumber);
  }

  // To each operand; that at `self` is a view of the number `base` (if it is not all of it), and its cotangent goes there.
  void send_operands(const GradientFlow::Step& s, const Event& e, const std::vector<Value>& cts, size_t self,
                     Number base) {
    if (std::none_of(cts.begin(), cts.end(), [](Value v) { return static_cast<bool>(v); })) return;
    std::vector<bool> needs = needs_of(s);
    std::vector<Value> back = pull(e, needs, cts);
    std::vector<Number> numbers = operands(e);
    for (size_t i = 0, k = 0; i < needs.size(); ++i) {
      if (!needs[i]) continue;
      Cotangent ct{back.at(k++), numbers.at(i)};
      send(s.targets[i], i == self && base != kNoNumber ? pull_to(ct, base) : ct);
    }
  }

  // Events that place a value in a view's base; before them comes a conversion of a value of another dtype.
  static bool places(const Event& e) { return e.row && transforms::is_put(*e.row); }
  static bool converts(const Event& e) { return e.row && e.row->name() == "prim::convert"; }

  // What the view's base is behind a write by this call. What is written later without gradients, under no_grad or through a detached
  // tensor, gives the memory another value and not the gradients.
  Number placed(const Event& call) const {
    Number n = call.first, converted = kNoNumber;
    for (const Event* e = &call + 1; e != trace_.events.data() + trace_.events.size(); ++e) {
      if (!places(*e) && !converts(*e)) continue;
      Number value = operands(*e).back();
      if (converts(*e) && value == n) converted = e->first;
      if (places(*e) && (value == n || value == converted)) n = e->first;
    }
    return n;
  }

  // A write into a view, seen from the view's base: behind the call come events that place its value in each view up to the base.
  void write(const GradientFlow::Step& s, const autograd::CopySlices& node) {
    const Event& e = trace_.events.at(recorded_[s.node].event);
    for (Cotangent ct : arrived(s.node, 0)) {
      Number base = kNoNumber;
      ct.number = placed(e);
      while (ct.number != e.first) {
        const Event& put = *event_of_.at(ct.number);
        size_t value = operands(put).size() - 1;
        BRASA_CHECK(put.row && put.count == 1, "a write through a view has another form");
        std::vector<JointSegment::Source> sources(value + 1);
        sources[value].flows = true;
        if (value > 0) sources[0] = sources_of(s).at(node.self_edge());
        sources_.emplace(static_cast<uint32_t>(&put - trace_.events.data()), std::move(sources));
        if (value > 0) {
          Cotangent before = pull_operand(put, 0, ct);
          if (base == kNoNumber) base = before.number;
          const GradientFlow::Target& self = s.targets.at(node.self_edge());
          if (self.flows()) send(self, pull_to(before, base));
        }
        ct = pull_operand(put, value, ct);
      }
      std::vector<Value> cts(e.count);
      cts[0] = ct.value;
      send_operands(s, e, cts, node.self_edge(), base);
    }
  }

  const Trace& trace_;
  std::span<const RecordedNode> recorded_;
  const GradientFlow& flow_;
  Trace::Body body_;
  ir::Facts facts_;
  std::vector<const Event*> event_of_;                     // by number
  std::vector<const GradientFlow::Step*> steps_;           // by node
  std::map<std::pair<uint32_t, uint32_t>, size_t> roots_;  // by node and result: the slot
  std::map<std::pair<uint32_t, uint32_t>, std::vector<Cotangent>> arrived_;
  std::vector<Value> gradients_;
  std::unordered_map<uint32_t, std::vector<JointSegment::Source>> sources_;
  std::unordered_map<uint32_t, int32_t> views_;  // by node
  std::vector<bool> passed_;                     // by held view: an operand's gradient goes through it
  std::unordered_map<uint32_t, bool> keeps_;     // by node
};

}  // namespace

std::shared_ptr<const JointSegment> derive(const Trace& trace, const Binding& binding,
                                           std::span<const RecordedNode> recorded, const GradientFlow& flow) {
  try {
    return Derivation(trace, binding, recorded, flow).run();
  } catch (const std::exception& e) {
    // An operator without a derivative, or a segment of another form: the nodes run, and the user meets an error where there is one.
    if (logs("recompiles")) log_line("recompiles", str("the backward pass is not compiled: ", e.what()));
    auto none = std::make_shared<JointSegment>();
    none->key = flow.key;
    return none;
  }
}

}  // namespace brasa::capture
