#include "capture/joint.h"

#include <algorithm>

#include "capture/replay.h"
#include "capture/uncompiled.h"
#include "compiler/compile.h"
#include "ops/decompose.h"
#include "support/error.h"
#include "support/pooled.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/saved.h"
#include "tensor/execute.h"
#include "tensor/recorder.h"

namespace brasa::capture {
namespace {

using autograd::Edge;
using autograd::Node;
using compiler::Operand;

// Where a gradient of the replayed segment arrives, before the leaf that it goes to (with that one's hooks, and what lies below it).
class Entry final : public Node, public Pooled {
 public:
  explicit Entry(const Edge& leaf) {
    next_edges_.push_back(leaf);
    const auto& results = leaf.function->internals().results;
    if (leaf.input_nr < results.size()) internals_->results.push_back(results[leaf.input_nr]);
  }
  std::string name() const override { return "CompiledBackward"; }

 protected:
  variable_list apply(variable_list&& g) override { return std::move(g); }
};

class SegmentNode final : public Node, public Pooled {
 public:
  SegmentNode(std::shared_ptr<const Halves> halves, const SavedRun& run)
      : halves_(std::move(halves)), binding_(run.binding) {
    for (const Tensor& t : run.inputs) inputs_.emplace_back(t, false);
    for (size_t i = 0; i < run.saved.size(); ++i)
      saved_.emplace_back(run.saved[i], halves_->saved[i].from != transforms::Saved::From::Input);
  }
  std::string name() const override { return "CompiledBackward"; }

  /// Lets the roots lead to the nodes of a replay, which lead through those that are `inside` and through held views.
  void expand(const std::vector<Edge>& roots, const std::vector<Edge>& inside, const std::vector<Edge>& views) {
    if (internals_->released) return;
    Recorder::Scope alone(nullptr);
    AutoGradMode mode(true);
    std::vector<Tensor> values = replayed(next_edges_, inside, views);
    for (size_t s = 0; s < roots.size(); ++s)
      if (roots[s].is_valid())
        autograd::NodeAccess::edges(*roots[s].function).at(roots[s].input_nr) = autograd::gradient_edge(values[s]);
  }

 protected:
  variable_list apply(variable_list&& cts) override {
    std::lock_guard lock(internals_->mutex);
    // The pass may have come here by a way that the operators' own nodes do not have.
    latest_.clear();
    for (size_t s = 0; s < cts.size(); ++s)
      if (cts[s].defined()) latest_.push_back(s);
    if (latest_.empty()) return variable_list(next_edges_.size());
    for (size_t s : latest_) BRASA_CHECK(!is_spent(s), autograd::second_time(name()));
    if (GradMode::is_enabled()) return differentiable(cts);
    if (Recorder* outer = Recorder::current()) outer->materialise("the backward of another compiled function");
    Recorder::Scope alone(nullptr);
    std::vector<Tensor> held;
    std::vector<Operand> operands;
    auto add = [&](Tensor t) {
      held.push_back(std::move(t));
      operands.push_back(eager::operand_of(held.back()));
    };
    for (const autograd::Saved& s : saved_) add(s.unpack(nullptr, name()));
    for (size_t i = 0; i < internals_->results.size(); ++i) {
      const autograd::ResultMeta& meta = internals_->results[i];
      add(i < cts.size() && cts[i].defined() ? cts[i].contiguous()
                                             : autograd::zeros(meta.sizes, meta.dtype, *meta.device));
    }
    static constexpr int64_t kNone[1] = {0};
    std::vector<int64_t> sizes;
    for (ir::Expr e : halves_->sizes) sizes.push_back(binding_(e));
    bool nothing = false;  // what an executable finds that reads the operands whose sizes matter
    for (int64_t& size : sizes) operands.push_back({&nothing, DType::Bool, {&size, 1}, kNone});
    std::vector<Tensor> results = eager::run(halves_->backward, operands);
    variable_list out(next_edges_.size());
    size_t next = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      Tensor g = halves_->joint->gradients[i] ? std::move(results[next++]) : Tensor();
      // From a result without a gradient comes none, which is not a zero one.
      bool flows = false;
      for (size_t s = 0; s < cts.size(); ++s) flows = flows || (cts[s].defined() && halves_->joint->reached[i][s]);
      if (flows) out[i] = g.defined() ? std::move(g) : zeros_at(next_edges_[i]);
    }
    return out;
  }
  // What other slots may still need stays.
  void release_variables() override {
    std::lock_guard lock(internals_->mutex);
    used_.insert(used_.end(), latest_.begin(), latest_.end());
    for (size_t s = 0; s < internals_->results.size(); ++s)
      if (!is_spent(s)) return;
    internals_->released = true;
    inputs_.clear();
    saved_.clear();
  }

 private:
  bool is_spent(size_t slot) const {
    return std::any_of(used_.begin(), used_.end(), [&](size_t u) { return halves_->joint->spends[u][slot]; });
  }

  static Tensor zeros_at(const Edge& edge) {
    const autograd::ResultMeta& meta = edge.function->internals().results.at(edge.input_nr);
    return autograd::zeros(meta.sizes, meta.dtype, *meta.device);
  }

  std::vector<Tensor> replayed(const std::vector<Edge>& leaves, const std::vector<Edge>& roots,
                               const std::vector<Edge>& views) const {
    std::vector<Tensor> inputs;
    const std::vector<bool>& read = halves_->joint->replayed;
    for (size_t i = 0; i < read.size(); ++i) inputs.push_back(read[i] ? inputs_[i].unpack(nullptr, name()) : Tensor());
    eager::DeviceScope scope(halves_->forward.program.device);
    return replay(*halves_->joint, binding_, inputs, leaves, roots, views);
  }

  variable_list differentiable(const variable_list& cts) const {
    std::vector<Edge> entries;
    for (const Edge& leaf : next_edges_) entries.push_back({autograd::make_node<Entry>(leaf), 0});
    std::vector<Tensor> roots = replayed(entries, {}, {});
    std::vector<Edge> from;
    variable_list given;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (i >= cts.size() || !cts[i].defined() || !roots[i].requires_grad()) continue;
      from.push_back(autograd::gradient_edge(roots[i]));
      given.push_back(cts[i]);
    }
    return autograd::gradients(from, given, entries, true);
  }

  std::shared_ptr<const Halves> halves_;
  Binding binding_;
  std::vector<autograd::Saved> inputs_, saved_;
  std::vector<size_t> latest_, used_;  // slots of the latest pass, of those that freed what they read
};

class FailingNode final : public Node {
 public:
  explicit FailingNode(std::string error) : error_(std::move(error)) {}
  std::string name() const override { return "CompiledBackward"; }

 protected:
  variable_list apply(variable_list&&) override { fail(error_); }

 private:
  std::string error_;
};

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

void set_results(Node& node, const GradientFlow& flow) {
  for (const GradientFlow::Slot& s : flow.slots)
    node.internals().results.push_back(flow.roots[s.root]->internals().results[s.result]);
}

// The roots and views that others lead through, and how the segment gives way to their nodes.
std::unique_ptr<autograd::Inside> inside_of(const std::shared_ptr<SegmentNode>& node, const JointSegment& joint,
                                            const GradientFlow& flow) {
  auto out = std::make_unique<autograd::Inside>();
  using Held = std::pair<std::weak_ptr<Node>, uint32_t>;
  std::vector<Held> roots, views;
  for (size_t s = 0; s < flow.slots.size(); ++s) {
    roots.emplace_back(flow.roots[flow.slots[s].root], flow.slots[s].result);
    if (joint.inside[s]) out->nodes.push_back(flow.roots[flow.slots[s].root]);
  }
  for (size_t k = 0; k < flow.views.size(); ++k) {
    views.emplace_back(flow.views[k].held, 0);
    if (joint.views[k]) out->nodes.push_back(flow.views[k].held);
  }
  if (out->nodes.empty()) return nullptr;
  for (const std::weak_ptr<Node>& inside : out->nodes) inside.lock()->internals().graphs.push_back(node);
  out->expand = [segment = std::weak_ptr(node), roots = std::move(roots), views = std::move(views),
                 inside = joint.inside] {
    auto edges = [](const std::vector<Held>& held) {
      std::vector<Edge> out;
      for (const auto& [weak, result] : held) out.push_back({weak.lock(), result});
      return out;
    };
    std::vector<Edge> all = edges(roots), through = all;
    for (size_t s = 0; s < through.size(); ++s)
      if (!inside[s]) through[s] = Edge();
    if (auto here = segment.lock()) here->expand(all, through, edges(views));
  };
  return out;
}

}  // namespace

std::shared_ptr<const Halves> compile_halves(std::shared_ptr<const JointSegment> joint,
                                             const std::vector<Delivery>& deliveries, const Backend& backend,
                                             const CompileOptions& options, ir::Facts& facts, runtime::Device& device) {
  for (const ir::Fact& f : joint->conditions.facts()) facts.equal(f.left, f.right);
  // The graph is the joint's own; its outputs are those of the variant that is compiled.
  std::vector<ir::Output>& outputs = joint->graph->outputs();
  outputs.clear();
  for (const Delivery& d : deliveries) outputs.push_back({d.of(*joint->graph, joint->values.at(d.number)), d.into, ""});
  for (ir::Value g : joint->gradients)
    if (g) outputs.push_back({g, -1, ""});
  transforms::JointGraph whole;
  {
    ops::TargetScope scope(compiler::computed_whole(device));
    whole.graph = ops::decompose(*joint->graph, facts, nullptr, ops::Whole::AsTarget);
  }
  transforms::Partition p = transforms::partition(whole, joint->inputs, deliveries.size(), facts);
  auto out = std::make_shared<Halves>();
  auto ready = [&](std::unique_ptr<ir::Graph> graph) {
    ir::Facts own = facts_of(*graph, facts);
    std::shared_ptr<compiler::Executable> executable = backend(*graph, own, options, device, {});
    for (const ir::Fact& f : own.facts()) facts.equal(f.left, f.right);
    return program::Variant{program::Program(std::move(graph), device), std::move(executable)};
  };
  out->forward = ready(std::move(p.forward));
  out->backward = ready(std::move(p.backward));
  for (const transforms::Saved& s : p.saved)
    if (s.from == transforms::Saved::From::Intermediate)
      out->intermediates.push_back(ir::type_of(out->forward.program.graph->outputs()[s.index].value));
  out->saved = std::move(p.saved);
  out->sizes = std::move(p.sizes);
  out->written.assign(joint->inputs, false);
  for (const Delivery& d : deliveries)
    if (d.into >= 0) out->written[d.into] = true;
  out->joint = std::move(joint);
  return out;
}

std::shared_ptr<Node> make_failing_node(std::string error) {
  return autograd::make_node<FailingNode>(std::move(error));
}

std::shared_ptr<Node> make_failed_node(const GradientFlow& flow) {
  auto node = make_failing_node(
      "backward through a compiled function that ended with an error: its values were never computed");
  autograd::NodeAccess::edges(*node) = flow.leaves;
  set_results(*node, flow);
  return node;
}

std::shared_ptr<Node> make_segment_node(std::shared_ptr<const Halves> halves, const SavedRun& run,
                                        const GradientFlow& flow) {
  autograd::KeepValues keep;
  const JointSegment& joint = *halves->joint;
  auto node = autograd::make_node<SegmentNode>(std::move(halves), run);
  autograd::NodeAccess::edges(*node) = flow.leaves;
  node->internals().inside = inside_of(node, joint, flow);
  node->internals().flows = &joint.reached;  // which the node keeps
  set_results(*node, flow);
  return node;
}

}  // namespace brasa::capture
