#include "capture/kept_values.h"

#include <algorithm>
#include <utility>

#include "compiler/compile.h"
#include "compiler/passes/pass_runner.h"
#include "ir/copy.h"
#include "ops/decompose.h"
#include "support/settings.h"
#include "transforms/recompute.h"

namespace brasa::capture {
namespace {

// Whether each event belongs to the forward part: nothing that it reads comes from a backward pass.
std::vector<bool> forward_events(const Trace& trace) {
  std::vector<bool> events, numbers(trace.types.size());
  for (const Event& e : trace.events) {
    bool forward = !e.backward;
    each_operand(e, [&](Number n) { forward = forward && numbers[n]; });
    events.push_back(forward);
    for (uint32_t r = 0; r < e.count; ++r) numbers[e.first + r] = forward;
  }
  return events;
}

bool any_checkpoint(const Trace& trace) {
  return std::any_of(trace.events.begin(), trace.events.end(), [](const Event& e) { return e.checkpoint != 0; });
}

}  // namespace

std::optional<double> memory_budget_of(const CompileOptions& options) {
  auto given = options.options.find("memory_budget");
  return given == options.options.end() ? std::nullopt : number_in(given->second);
}

KeptValues::KeptValues(const Trace& trace, const ir::Graph& primitives, const std::function<ir::Value(Number)>& value,
                       const CompileOptions& options) {
  keeping.budget = memory_budget_of(options).value_or(1);
  keeping.origin.assign(primitives.nodes().size(), transforms::Keeping::kDerived);
  forward.assign(primitives.nodes().size(), false);
  auto found = [&](const ir::Node* n, uint32_t checkpoint) {
    if (forward[n->id]) return false;
    forward[n->id] = true;
    keeping.origin[n->id] = checkpoint;
    return true;
  };
  for (const ir::Input& in : primitives.inputs()) found(in.value.node, 0);
  std::vector<bool> events = forward_events(trace);
  for (size_t i = 0; i < events.size(); ++i) {
    const Event& e = trace.events[i];
    // What it is made of and no earlier event made.
    std::vector<const ir::Node*> open;
    for (uint32_t r = 0; events[i] && r < e.count; ++r)
      if (ir::Value v = value(e.first + r)) open.push_back(v.node);
    while (!open.empty()) {
      const ir::Node* n = open.back();
      open.pop_back();
      if (found(n, e.checkpoint)) n->for_each_input([&](ir::Value v) { open.push_back(v.node); });
    }
  }
}

std::unique_ptr<ir::Graph> recomputing_graph(const Trace& trace, const std::vector<Delivery>& deliveries,
                                             const CompileOptions& options, ir::Facts& facts, runtime::Device& device) {
  bool has_backward = std::any_of(trace.events.begin(), trace.events.end(), [](const Event& e) { return e.backward; });
  std::optional<double> budget = memory_budget_of(options);
  using Spare = transforms::Keeping::Spare;
  // Of a GPU the mode that looks for the fastest way spends the memory.
  bool spends = !device.on_host() && options.mode.starts_with("max-autotune");
  bool none = budget || spends || compiler::PassRunner::switched_off("spare_memory");
  Spare spare = none ? Spare::Nothing : device.on_host() ? Spare::AllCheap : Spare::Activations;
  if (!has_backward || (none && !any_checkpoint(trace) && budget.value_or(1) >= 1)) return nullptr;
  Trace::Body body = trace.body();
  std::vector<ir::Value> values;
  for (const Delivery& d : deliveries) values.push_back(d.of(*body.graph, body.values.at(d.number)));
  ir::Graph primitives(ir::Level::Primitives);
  ir::ValueMap map;
  ir::copy_inputs(primitives, *body.graph, map);
  {
    ops::TargetScope scope(compiler::computed_whole(device));
    ops::decompose(*body.graph, values, primitives, map, facts, nullptr, ops::Whole::AsTarget);
  }
  std::vector<ir::Output> checks = std::exchange(primitives.outputs(), {});
  for (size_t i = 0; i < values.size(); ++i) primitives.add_output(map(values[i]), deliveries[i].into);
  for (ir::Output& o : checks) primitives.add_check(o.value, std::move(o.check));
  KeptValues kept(trace, primitives, [&](Number n) { return map.find(body.values[n]); }, options);
  kept.keeping.repeats_cheap = false;
  kept.keeping.spare = spare;
  return transforms::recompute(primitives, kept.forward, facts, kept.keeping);
}

}  // namespace brasa::capture
