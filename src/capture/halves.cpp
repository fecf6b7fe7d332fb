#include <algorithm>
#include <utility>

#include "capture/derivation.h"
#include "capture/kept_values.h"
#include "compiler/compile.h"
#include "compiler/passes/unread_parts.h"
#include "ir/copy.h"
#include "ops/algebra.h"
#include "ops/decompose.h"

// The two halves of a joint graph. All derivatives of it are parts of one graph of primitives, so that the cut, which is made for
// cotangents of all slots, stands for whatever comes back. Of a saved value that part alone waits which they read.
namespace brasa::capture {
namespace {

// A backward graph that gets these parts of what is saved, and is zero for inputs of the joint graph that do not come.
void narrow(transforms::BackwardGraph& back, const std::vector<std::optional<compiler::Part>>& parts,
            const std::function<bool(size_t)>& comes, ir::Facts& facts) {
  auto graph = std::make_unique<ir::Graph>(back.graph->level());
  graph->name = back.graph->name;
  ops::Builder builder(*graph, facts);
  ir::ValueMap map;
  size_t saved = back.saved.size(), given = saved + back.inputs.size();
  for (size_t i = 0; i < back.graph->inputs().size(); ++i) {
    const ir::Input& in = back.graph->inputs()[i];
    ir::Type t = ir::type_of(in.value);
    if (i >= saved && i < given && !comes(back.inputs[i - saved])) {
      map.set(in.value, ops::full(ops::Number(0.0), t.shape, t.dtype));
      continue;
    }
    const std::optional<compiler::Part> part = i < saved ? parts[back.saved[i]] : std::nullopt;
    if (!part) {
      map.set(in.value, graph->add_input(t, in.name, in.strides, in.by_value));
      continue;
    }
    ir::Value v = graph->add_input({t.dtype, compiler::sizes_of(*part), false}, in.name, {}, in.by_value);
    map.set(in.value, compiler::zeros_around(v, *part, t.shape));
  }
  ir::copy_live_nodes(*graph, *back.graph, map);
  for (const ir::Output& o : back.graph->outputs()) graph->outputs().push_back({map(o.value), o.into, o.check});
  back.graph = std::move(graph);
  std::erase_if(back.inputs, [&](size_t i) { return !comes(i); });
  for (ir::Expr e : transforms::add_sizes(*back.graph)) back.sizes.push_back(e);
}

// The facts about symbols that the graph's inputs show: a half does not know the others, in whose terms facts of the whole would put
// its sizes.
ir::Facts facts_of(const ir::Graph& graph, const ir::Facts& whole) {
  std::vector<ir::Expr> shown;
  for (const ir::Input& in : graph.inputs()) {
    for (ir::Expr e : ir::type_of(in.value).shape) ir::collect_symbols(e, shown);
    for (ir::Expr e : in.strides) ir::collect_symbols(e, shown);
  }
  std::vector<int64_t> hints;
  for (ir::Expr s : shown) {
    if (hints.size() <= s->id) hints.resize(s->id + 1);
    if (whole.has_hint(s)) hints[s->id] = whole.hint(s);
  }
  ir::Facts out(std::move(hints));
  auto known = [&](ir::Expr e) {
    std::vector<ir::Expr> symbols;
    ir::collect_symbols(e, symbols);
    return std::all_of(symbols.begin(), symbols.end(),
                       [&](ir::Expr s) { return std::find(shown.begin(), shown.end(), s) != shown.end(); });
  };
  for (const ir::Fact& f : whole.facts())
    if (known(f.left) && known(f.right)) out.equal(f.left, f.right);
  return out;
}

}  // namespace

Halves::Halves(std::shared_ptr<const JointSegment> segment, const std::vector<Delivery>& deliveries,
               const Backend& backend, const CompileOptions& options, ir::Facts& facts, runtime::Device& device)
    : joint(std::move(segment)), backend_(backend), options_(options), device_(device) {
  for (const ir::Fact& f : joint->conditions.facts()) facts.equal(f.left, f.right);
  Derivation& derivation = *joint->derivation;
  std::unique_lock lock(derivation.mutex);
  ir::copy_inputs(primitives_, derivation.graph(), map_);
  std::vector<ir::Value> values;
  for (const Delivery& d : deliveries) values.push_back(d.of(derivation.graph(), derivation.value(d.number)));
  for (ir::Value g : derivation.pull(std::vector<bool>(joint->roots.size(), true), facts))
    if (g) values.push_back(g);
  decompose(values, facts);
  lock.unlock();
  std::vector<ir::Output> checks = std::exchange(primitives_.outputs(), {});
  for (size_t i = 0; i < values.size(); ++i)
    primitives_.add_output(map_(values[i]), i < deliveries.size() ? deliveries[i].into : -1);
  for (ir::Output& o : checks) primitives_.add_check(o.value, std::move(o.check));
  KeptValues kept(joint->trace, primitives_, [&](Number n) { return map_.find(derivation.value(n)); }, options);
  transforms::Partition p =
      transforms::partition(primitives_, derivation.inputs(), deliveries.size(), facts, kept.keeping);
  save_parts(p, std::span(primitives_.outputs()).subspan(deliveries.size()), facts);
  primitives_.outputs().clear();
  forward = ready(std::move(p.forward), facts);
  for (const transforms::Saved& s : p.saved)
    if (s.from == transforms::Saved::From::Intermediate)
      intermediates.push_back(ir::type_of(forward.program.graph->outputs()[s.index].value));
  saved = std::move(p.saved);
  values_ = std::move(p.values);
  written.assign(derivation.inputs(), false);
  for (const Delivery& d : deliveries)
    if (d.into >= 0) written[d.into] = true;
  forward.program.conditions = program::Conditions(facts.facts());
}

void Halves::save_parts(transforms::Partition& p, std::span<const ir::Output> gradients, ir::Facts& facts) {
  std::vector<ir::Value> values;
  for (const ir::Output& o : gradients)
    if (o.check.empty()) values.push_back(o.value);
  transforms::BackwardGraph back = transforms::backward_graph(primitives_, p.values, values);
  std::vector<std::optional<compiler::Part>> read = compiler::parts_read(*back.graph, facts, numbers_of(options_));
  parts_.resize(p.saved.size());
  ops::Builder builder(*p.forward, facts);
  for (size_t k = 0; k < back.saved.size(); ++k) {
    const transforms::Saved& s = p.saved[back.saved[k]];
    if (!read[k] || s.from != transforms::Saved::From::Intermediate) continue;
    ir::Output& o = p.forward->outputs()[static_cast<size_t>(s.index)];
    o.value = compiler::part_of(o.value, *read[k]);
    parts_[back.saved[k]] = std::move(read[k]);
  }
}

void Halves::decompose(const std::vector<ir::Value>& values, ir::Facts& facts) const {
  ops::TargetScope scope(compiler::computed_whole(device_));
  ops::decompose(joint->derivation->graph(), values, primitives_, map_, facts, nullptr, ops::Whole::AsTarget);
}

program::Variant Halves::ready(std::unique_ptr<ir::Graph> graph, ir::Facts& facts) const {
  ir::Facts own = facts_of(*graph, facts);
  std::shared_ptr<compiler::Executable> executable = backend_(*graph, own, options_, device_, {});
  for (const ir::Fact& f : own.facts()) facts.equal(f.left, f.right);
  return {program::Program(std::move(graph), device_), std::move(executable)};
}

const Halves::Backward* Halves::backward(const std::vector<bool>& given, const Binding& binding) const {
  std::lock_guard lock(mutex_);
  for (const auto& b : backwards_)
    if (b->given == given && b->conditions.hold(binding.symbols.data())) return b.get();
  if (static_cast<int>(backwards_.size()) >= options_.recompile_limit) return nullptr;
  return backwards_.emplace_back(make_backward(given, binding)).get();
}

bool Halves::reads_parts(const transforms::BackwardGraph& back, const ir::Facts& facts) const {
  std::vector<std::optional<compiler::Part>> read = compiler::parts_read(*back.graph, facts, numbers_of(options_));
  for (size_t k = 0; k < back.saved.size(); ++k)
    if (const auto& part = parts_[back.saved[k]]; part && read[k] != part) return false;
  return true;
}

std::unique_ptr<Halves::Backward> Halves::make_backward(const std::vector<bool>& given, const Binding& binding) const {
  ir::Facts facts(binding.symbols);
  for (const ir::Fact& f : forward.program.conditions.facts()) facts.equal(f.left, f.right);
  Derivation& derivation = *joint->derivation;
  std::unique_lock lock(derivation.mutex);
  auto out = std::make_unique<Backward>();
  auto backward_from = [&](const std::vector<bool>& slots) {
    std::vector<ir::Value> values, all = derivation.pull(slots, facts);
    if (out->gives.empty())
      for (ir::Value g : all) out->gives.push_back(static_cast<bool>(g));
    for (size_t leaf = 0; leaf < all.size(); ++leaf)
      if (out->gives[leaf]) values.push_back(all[leaf]);
    decompose(values, facts);
    primitives_.outputs().clear();  // checks, of what the forward half has checked
    for (ir::Value& v : values) v = map_(v);
    return transforms::backward_graph(primitives_, values_, values);
  };
  transforms::BackwardGraph back = backward_from(given);
  auto comes = [&](size_t input) { return input < derivation.inputs() || given[input - derivation.inputs()]; };
  if (std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p.has_value(); })) {
    // The parts are those that all cotangents read.
    if (!reads_parts(back, facts)) back = backward_from(std::vector<bool>(given.size(), true));
    narrow(back, parts_, comes, facts);
  }
  lock.unlock();
  out->given = given;
  out->saved = std::move(back.saved);
  for (size_t i : back.inputs)
    i < derivation.inputs() ? out->inputs.push_back(i) : out->slots.push_back(i - derivation.inputs());
  out->sizes = std::move(back.sizes);
  out->variant = ready(std::move(back.graph), facts);
  out->conditions = program::Conditions(facts.facts());
  return out;
}

}  // namespace brasa::capture
