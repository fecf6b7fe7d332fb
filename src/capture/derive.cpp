#include "capture/derivation.h"

#include <algorithm>
#include <set>

#include "capture/replay.h"
#include "ops/algebra.h"
#include "ops/builder.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "support/log.h"
#include "tensor/autograd/view_nodes.h"
#include "transforms/derived.h"

namespace brasa::capture {
namespace {

using autograd::NodeAccess;
using ir::Value;

std::vector<Number> operands(const Event& e) {
  std::vector<Number> out;
  each_operand(e, [&](Number n) { out.push_back(n); });
  return out;
}

Value sum(Value a, Value b) {
  return a && b ? ops::Builder::current().record(ops::at("aten::add.Tensor"), {a, b})[0] : a ? a : b;
}

std::vector<bool> needs_of(std::span<const GradientFlow::Target> targets) {
  std::vector<bool> needs;
  for (const GradientFlow::Target& t : targets) needs.push_back(t.flows());
  return needs;
}

}  // namespace

Derivation::Derivation(const Trace& trace, std::span<const RecordedNode> recorded, const GradientFlow& flow)
    : trace_(trace),
      body_(trace.body()),
      inputs_(body_.graph->inputs().size()),
      place_(recorded.size()),
      leaves_(flow.leaves.size()),
      passed_(flow.views.size()) {
  for (const Event& e : trace.events)
    for (uint32_t r = 0; r < e.count; ++r) event_of_.push_back(&e);
  std::unordered_map<const autograd::Node*, uint32_t> node_of;
  for (const GradientFlow::Step& s : flow.steps) {
    auto node = recorded[s.node].node.lock();
    node_of[node.get()] = s.node;
    Step& step = steps_.emplace_back(Step{s.node, recorded[s.node].event, s.targets, recorded[s.node].results});
    if (step.results.empty()) {
      const auto& view = static_cast<const autograd::ViewNode&>(*node);
      step.moves = &view.row();
      step.stays = !view.moves();
    } else if (NodeAccess::inner(*node)) {
      step.self = static_cast<const autograd::CopySlices&>(*node).self_edge();
    }
  }
  std::sort(steps_.begin(), steps_.end(), [](const Step& a, const Step& b) { return a.node > b.node; });
  for (size_t i = 0; i < steps_.size(); ++i) place_[steps_[i].node] = i;
  for (const GradientFlow::Slot& s : flow.slots) {
    uint32_t node = node_of.at(flow.roots[s.root].get());
    roots_[{node, s.result}] = slots_.size();
    Value ct = body_.graph->add_input(trace.types[s.number], str("cotangent", slots_.size()));
    slots_.push_back({node, s.result, s.number, ct});
  }
  for (size_t i = 0; i < flow.views.size(); ++i) views_[flow.views[i].node] = static_cast<int32_t>(i);
}

std::vector<Value> Derivation::pull(const std::vector<bool>& given, ir::Facts& facts) {
  for (const Event& e : trace_.events)
    for (const ir::Fact& f : e.facts) facts.equal(f.left, f.right);
  ops::Builder builder(*body_.graph, facts);
  arrived_.clear();
  for (size_t i = 0; i < slots_.size(); ++i)
    if (given[i]) arrived_[{slots_[i].node, slots_[i].result}].push_back({slots_[i].cotangent, slots_[i].number});
  gradients_.assign(leaves_, Value{});
  for (const Step& s : steps_) {
    if (s.moves)
      view(s);
    else if (s.self != kNone)
      write(s);
    else
      call(s);
  }
  return std::move(gradients_);
}

void Derivation::describe(JointSegment& joint, const ir::Facts& facts) {
  for (const Slot& s : slots_) joint.roots.push_back(made_by(s.node, s.result, s.number));
  for (const Step& s : steps_) {
    if (s.self != kNone) add_put_sources(s);
    if (!s.moves) sources_.emplace(s.event, sources_of(s));
  }
  joint.sources = std::move(sources_);
  joint.views = std::move(passed_);
  joint.replayed = inputs_of_replay(joint);
  joint.reached.assign(leaves_, std::vector<bool>(slots_.size()));
  joint.inside.resize(slots_.size());
  std::vector<std::vector<bool>> below;
  for (size_t slot = 0; slot < slots_.size(); ++slot) below.push_back(find_reached(joint, slot, facts));
  joint.spends.assign(below.size(), std::vector<bool>(below.size()));
  for (size_t a = 0; a < below.size(); ++a)
    for (size_t b = a; b < below.size(); ++b)
      joint.spends[a][b] = joint.spends[b][a] = share(below[a], below[b], facts);
}

// The value that a node gave which lies where `now` does: it is another one where the memory was written without gradients since.
Number Derivation::made_by(uint32_t node, uint32_t result, Number now) const {
  const Step& s = step_of(static_cast<int32_t>(node));
  if (s.moves) return now;
  Number n = s.results[result];
  return trace_.types[n].shape == trace_.types[now].shape ? n : now;
}

// What lies below a slot, by node.
std::vector<bool> Derivation::find_reached(JointSegment& joint, size_t slot, const ir::Facts& facts) {
  std::vector<bool> seen(place_.size());
  std::set<std::pair<uint32_t, uint32_t>> results;
  std::vector<std::pair<uint32_t, uint32_t>> open{{slots_[slot].node, slots_[slot].result}};
  while (!open.empty()) {
    auto [node, result] = open.back();
    open.pop_back();
    if (!results.insert({node, result}).second) continue;
    seen[node] = true;
    const Step& s = step_of(static_cast<int32_t>(node));
    std::vector<bool> flows = flows_of(s, result, facts);
    for (size_t i = 0; i < s.targets.size(); ++i) {
      const Target& to = s.targets[i];
      if (!flows[i]) continue;
      if (to.leaf >= 0) joint.reached[to.leaf][slot] = true;
      if (auto it = roots_.find({static_cast<uint32_t>(to.node), to.result}); to.node >= 0 && it != roots_.end())
        joint.inside[it->second] = true;
      if (to.node >= 0) open.push_back({static_cast<uint32_t>(to.node), to.result});
    }
  }
  return seen;
}

// By target: whether a result's gradient flows there.
std::vector<bool> Derivation::flows_of(const Step& s, uint32_t result, const ir::Facts& known) {
  const Event* e = s.moves || s.self != kNone ? nullptr : &trace_.events.at(s.event);
  if (!e || !transforms::may_not_flow(*e->row, e->count)) return std::vector<bool>(s.targets.size(), true);
  auto [it, fresh] = flows_.try_emplace(s.node);
  if (fresh) {
    ir::Facts facts = known;
    CallAlone call = alone(*e);
    it->second = transforms::flows(*e->row, call.args, facts);
  }
  return it->second.at(result);
}

// An event's call in a graph of its own.
Derivation::CallAlone Derivation::alone(const Event& e) const {
  CallAlone out{std::make_unique<ir::Graph>(ir::Level::Operators), {}, {}};
  out.args = mapped_args(e, [&](Value v) {
    if (is_argument(v)) return out.graph->add_input({trace_.arguments[v.index].dtype, {}, true});
    if (v.index == 0) return Value{};
    auto [it, fresh] = out.operands.try_emplace(v.index);
    if (fresh) it->second = out.graph->add_input(trace_.types.at(v.index - 1));
    return it->second;
  });
  return out;
}

// Whether a node of both keeps something for its backward.
bool Derivation::share(const std::vector<bool>& a, const std::vector<bool>& b, const ir::Facts& facts) {
  for (const Step& s : steps_)
    if (a[s.node] && b[s.node] && keeps(s, facts)) return true;
  return false;
}

bool Derivation::keeps(const Step& s, const ir::Facts& facts) {
  if (s.moves) return false;
  auto [it, fresh] = keeps_.try_emplace(s.node, true);
  if (fresh && s.self == kNone) it->second = reads_operands(s, facts);
  return it->second;
}

// Whether a call's derivative is computed from its operands.
bool Derivation::reads_operands(const Step& s, const ir::Facts& known) const {
  const Event& e = trace_.events.at(s.event);
  CallAlone call = alone(e);
  ir::Graph& graph = *call.graph;
  ir::Args args = std::move(call.args);
  std::vector<Value> cts;
  for (uint32_t r = 0; r < e.count; ++r) cts.push_back(graph.add_input(trace_.types.at(e.first + r)));
  args.push_back(ir::Arg(std::vector<Value>(e.count)));
  args.push_back(ir::Arg(cts));
  ir::Facts facts = known;
  ops::Builder builder(graph, facts);
  for (Value v : builder.record(transforms::vjp_row(*e.row, needs_of(s.targets), std::vector<bool>(e.count, true)),
                                std::move(args)))
    if (v) graph.add_output(v);
  std::unique_ptr<ir::Graph> primitives = ops::decompose(graph, facts);
  std::vector<ir::Node*> live = ir::live_nodes(*primitives);
  return std::any_of(call.operands.begin(), call.operands.end(), [&](const auto& operand) {
    Value in = primitives->inputs()[graph.input_index(operand.second)].value;
    return std::find(live.begin(), live.end(), in.node) != live.end();
  });
}

// A write into a view takes its target's gradient from the view's base.
std::vector<JointSegment::Source> Derivation::sources_of(const Step& s) {
  std::vector<Number> numbers = operands(trace_.events.at(s.event));
  std::vector<JointSegment::Source> out;
  for (size_t i = 0; i < s.targets.size(); ++i) {
    JointSegment::Source& source = out.emplace_back();
    const Target* to = &s.targets[i];
    source.flows = to->flows();
    if (!source.flows || i >= numbers.size()) continue;
    source.at = numbers[i];
    if (i == s.self) {
      while (event_of_.at(source.at)->view) source.at = operands(*event_of_[source.at]).at(0);
      set_end(source, *to);
      continue;
    }
    while (to->node >= 0 && step_of(to->node).moves) {
      if (auto it = views_.find(static_cast<uint32_t>(to->node)); it != views_.end()) {
        passed_.at(it->second) = true;
        if (source.view < 0) source.view_at = source.at;
        if (source.view < 0) source.view = it->second;
      }
      if (const Event* e = view_event(step_of(to->node), source.at)) source.at = operands(*e).at(0);
      to = &step_of(to->node).targets.at(0);
    }
    set_end(source, *to);
  }
  return out;
}

// The gradient goes to this target.
void Derivation::set_end(JointSegment::Source& source, const Target& to) const {
  source.leaf = to.leaf;
  if (to.node >= 0) source.made = made_by(static_cast<uint32_t>(to.node), to.result, source.at);
  if (auto it = roots_.find({static_cast<uint32_t>(to.node), to.result}); to.node >= 0 && it != roots_.end())
    source.root = static_cast<int32_t>(it->second);
}

// The event of a view's node that gave this number. A read that needed no movement, because the view is all of its storage, has none.
const Event* Derivation::view_event(const Step& s, Number number) const {
  const Event& e = *event_of_.at(number);
  return e.view && e.row == s.moves ? &e : nullptr;
}

// Cotangents of an event's operands that `needs` marks.
std::vector<Value> Derivation::pull(const Event& e, const std::vector<bool>& needs, const std::vector<Value>& cts) {
  std::vector<bool> given;
  for (Value ct : cts) given.push_back(static_cast<bool>(ct));
  ir::Args args = mapped_args(e, body_);
  args.push_back(ir::Arg(std::vector<Value>(cts.size())));
  args.push_back(ir::Arg(cts));
  return ops::Builder::current().record(transforms::vjp_row(*e.row, needs, given), std::move(args));
}

// Of an operand that is the only one to get a cotangent.
Derivation::Cotangent Derivation::pull_operand(const Event& e, size_t operand, const Cotangent& ct) {
  std::vector<Number> from = operands(e);
  std::vector<bool> needs(from.size());
  needs.at(operand) = true;
  std::vector<Value> cts(e.count);
  cts.at(ct.number - e.first) = ct.value;
  return {pull(e, needs, cts).at(0), from[operand]};
}

// Through what dispatch put between a call and its result (conversions), and views.
Derivation::Cotangent Derivation::pull_to(Cotangent ct, Number number) {
  while (ct.number != number) {
    const Event& e = *event_of_.at(ct.number);
    BRASA_CHECK(e.row && (e.view || e.row->is_primitive()), "a gradient passes ", e.row ? e.row->name() : "an input");
    ct = pull_operand(e, 0, ct);
  }
  return ct;
}

bool Derivation::is_one_read(Number a, Number b) const {
  const Event &first = *event_of_.at(a), &other = *event_of_.at(b);
  return a == b || (first.view && other.view && first.row == other.row && value(a) == value(b));
}

void Derivation::send(const Target& to, const Cotangent& ct) {
  if (to.leaf >= 0) gradients_[to.leaf] = sum(gradients_[to.leaf], ct.value);
  if (to.leaf >= 0 || to.node < 0) return;
  // One for each number: each goes its own way back, and two of one number through every write would double with each. Two reads of a view
  // that nothing wrote to between are one, whose cotangents are added up before they go on, as eagerly.
  std::vector<Cotangent>& all = arrived_[{static_cast<uint32_t>(to.node), to.result}];
  auto same =
      std::find_if(all.begin(), all.end(), [&](const Cotangent& c) { return is_one_read(c.number, ct.number); });
  if (same == all.end())
    all.push_back(ct);
  else
    same->value = sum(same->value, ct.value);
}

std::vector<Derivation::Cotangent> Derivation::arrived(uint32_t node, uint32_t result) {
  auto it = arrived_.find({node, result});
  return it == arrived_.end() ? std::vector<Cotangent>() : std::move(it->second);
}

void Derivation::view(const Step& s) {
  for (const Cotangent& ct : arrived(s.node, 0)) {
    const Event* e = view_event(s, ct.number);
    // What was written since through another view may lie as this one does, and not as what this one is of.
    BRASA_CHECK(e || s.stays, "a gradient passes ", s.moves->name(), " of memory that was written since");
    send(s.targets.at(0), e ? pull_operand(*e, 0, ct) : ct);
  }
}

// Of a node's result, as the node gave it: what was written later without gradients, under no_grad or through a detached tensor, gives the
// memory another value and not the gradients.
Value Derivation::arrived_in(const Step& s, uint32_t result) {
  Value all;
  for (const Cotangent& ct : arrived(s.node, result)) all = sum(all, ct.value);
  return all;
}

// The cotangents of a recorded call's results.
std::vector<Value> Derivation::results_of(const Step& s, const Event& e) {
  std::vector<Value> cts(e.count);
  for (uint32_t r = 0; r < s.results.size(); ++r)
    if (Value ct = arrived_in(s, r)) cts.at(r) = pull_to({ct, s.results[r]}, e.first + r).value;
  return cts;
}

void Derivation::call(const Step& s) {
  const Event& e = trace_.events.at(s.event);
  send_operands(s, e, results_of(s, e), kNone, kNoNumber);
}

// To each operand; that at `self` is a view of the number `base` (if it is not all of it), and its cotangent goes there.
void Derivation::send_operands(const Step& s, const Event& e, const std::vector<Value>& cts, size_t self, Number base) {
  if (std::none_of(cts.begin(), cts.end(), [](Value v) { return static_cast<bool>(v); })) return;
  std::vector<bool> needs = needs_of(s.targets), some(needs.size());
  for (uint32_t r = 0; r < cts.size(); ++r) {
    if (!cts[r]) continue;
    std::vector<bool> flows = flows_of(s, r, ops::Builder::current().facts());
    for (size_t i = 0; i < some.size(); ++i) some[i] = some[i] || flows[i];
  }
  for (size_t i = 0; i < needs.size(); ++i) needs[i] = needs[i] && some[i];
  if (std::find(needs.begin(), needs.end(), true) == needs.end()) return;
  std::vector<Value> back = pull(e, needs, cts);
  std::vector<Number> numbers = operands(e);
  for (size_t i = 0, k = 0; i < needs.size(); ++i) {
    if (!needs[i]) continue;
    Cotangent ct{back.at(k++), numbers.at(i)};
    send(s.targets[i], i == self && base != kNoNumber ? pull_to(ct, base) : ct);
  }
}

// A write into a view, seen from the view's base: behind the call come events that place its value in each view up to the base.
void Derivation::write(const Step& s) {
  const Event& e = trace_.events.at(s.event);
  Cotangent ct{arrived_in(s, 0), s.results[0]};
  if (!ct.value) return;
  Number base = kNoNumber;
  while (ct.number != e.first) {
    const Event& put = *event_of_.at(ct.number);
    size_t value = operands(put).size() - 1;
    BRASA_CHECK(put.row && put.count == 1, "a write through a view has another form");
    if (value > 0) {
      Cotangent before = pull_operand(put, 0, ct);
      if (base == kNoNumber) base = before.number;
      const Target& self = s.targets.at(s.self);
      if (self.flows()) send(self, pull_to(before, base));
    }
    ct = pull_operand(put, value, ct);
  }
  std::vector<Value> cts(e.count);
  cts[0] = ct.value;
  send_operands(s, e, cts, s.self, base);
}

void Derivation::add_put_sources(const Step& s) {
  const Event& e = trace_.events.at(s.event);
  for (Number n = s.results[0]; n != e.first;) {
    const Event& put = *event_of_.at(n);
    std::vector<Number> from = operands(put);
    std::vector<JointSegment::Source> sources(from.size());
    sources.back().flows = true;
    if (from.size() > 1) sources[0] = sources_of(s).at(s.self);
    sources_.emplace(static_cast<uint32_t>(&put - trace_.events.data()), std::move(sources));
    n = from.back();
  }
}

std::shared_ptr<const JointSegment> derive(const Trace& trace, const Binding& binding,
                                           std::span<const RecordedNode> recorded, const GradientFlow& flow) {
  try {
    auto joint = std::make_shared<JointSegment>();
    joint->key = flow.key;
    joint->trace = trace.copy();
    ir::Facts facts(binding.symbols);
    auto derivation = std::make_shared<Derivation>(joint->trace, recorded, flow);
    derivation->pull(std::vector<bool>(flow.slots.size(), true), facts);
    derivation->describe(*joint, facts);
    joint->conditions = program::Conditions(facts.facts());
    joint->derivation = std::move(derivation);
    return joint;
  } catch (const std::exception& e) {
    // An operator without a derivative, or a segment of another form: the nodes run, and the user meets an error where there is one.
    if (logs("recompiles")) log_line("recompiles", str("the backward pass is not compiled: ", e.what()));
    auto none = std::make_shared<JointSegment>();
    none->key = flow.key;
    return none;
  }
}

}  // namespace brasa::capture
