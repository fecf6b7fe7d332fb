#include <algorithm>
#include <utility>

#include "capture/derivation.h"
#include "capture/kept_values.h"
#include "compiler/compile.h"
#include "ir/copy.h"
#include "ops/decompose.h"
#include "transforms/derived.h"
#include "transforms/vjp.h"

// The two halves of a joint graph. All derivatives of it are parts of one graph of primitives, so that the cut, which is made for
// cotangents of all slots, stands for whatever comes back.
namespace brasa::capture {
namespace {

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
  std::vector<bool> published;
  for (size_t i = 0; i < deliveries.size(); ++i) {
    ir::Value v = values[i];
    while (v.node->op != ir::input_op() && ops::row_of(*v.node).view) v = v.node->inputs()[0];
    bool plain = v.node->op != ir::input_op() && transforms::is_plain_arithmetic(map_(values[i]));
    published.push_back(plain && transforms::is_published(ops::row_of(*v.node), v.node->args, v.index, facts));
  }
  lock.unlock();
  std::vector<ir::Output> checks = std::exchange(primitives_.outputs(), {});
  for (size_t i = 0; i < values.size(); ++i)
    primitives_.add_output(map_(values[i]), i < deliveries.size() ? deliveries[i].into : -1);
  for (ir::Output& o : checks) primitives_.add_check(o.value, std::move(o.check));
  KeptValues kept(joint->trace, primitives_, [&](Number n) { return map_.find(derivation.value(n)); }, options);
  kept.keeping.published = std::move(published);
  transforms::Partition p =
      transforms::partition(primitives_, derivation.inputs(), deliveries.size(), facts, kept.keeping);
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

std::unique_ptr<Halves::Backward> Halves::make_backward(const std::vector<bool>& given, const Binding& binding) const {
  ir::Facts facts(binding.symbols);
  for (const ir::Fact& f : forward.program.conditions.facts()) facts.equal(f.left, f.right);
  Derivation& derivation = *joint->derivation;
  std::unique_lock lock(derivation.mutex);
  auto out = std::make_unique<Backward>();
  std::vector<ir::Value> values;
  for (ir::Value g : derivation.pull(given, facts)) {
    out->gives.push_back(static_cast<bool>(g));
    if (g) values.push_back(g);
  }
  decompose(values, facts);
  lock.unlock();
  primitives_.outputs().clear();  // checks, of what the forward half has checked
  for (ir::Value& v : values) v = map_(v);
  transforms::BackwardGraph back = transforms::backward_graph(primitives_, values_, values);
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
