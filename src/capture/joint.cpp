#include "capture/joint.h"

#include <algorithm>
#include <utility>

#include "capture/replay.h"
#include "capture/uncompiled.h"
#include "support/error.h"
#include "support/pooled.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/record.h"
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

// A node that something else keeps, and which result of it.
struct HeldResult {
  std::weak_ptr<Node> node;
  uint32_t result;
  Edge edge() const { return {node.lock(), result}; }
};
std::vector<Edge> edges_of(const std::vector<HeldResult>& held) {
  std::vector<Edge> out;
  for (const HeldResult& h : held) out.push_back(h.edge());
  return out;
}

// What was made in inference mode may be kept: recording has refused the operators whose derivatives read it.
Tensor without_inference(const Tensor& t) {
  if (!t.defined() || !impl_of(t)->inference) return t;
  Tensor out = shallow_copy(t);
  impl_of(out)->inference = false;
  return out;
}

class SegmentNode final : public Node, public Pooled {
 public:
  /// Without halves its derivative runs operator by operator.
  SegmentNode(std::shared_ptr<const JointSegment> joint, std::shared_ptr<const Halves> halves, runtime::Device* device,
              const SavedRun& run, const GradientFlow& flow)
      : joint_(std::move(joint)), halves_(std::move(halves)), device_(device), binding_(run.binding) {
    watched_ = std::exchange(internals_->anomaly, nullptr) != nullptr;
    for (const Tensor& t : run.inputs) inputs_.emplace_back(without_inference(t), false);
    for (size_t i = 0; i < run.saved.size(); ++i)
      saved_.emplace_back(without_inference(run.saved[i]), halves_->saved[i].from != transforms::Saved::From::Input);
    for (const GradientFlow::Slot& s : flow.slots) roots_.push_back({flow.roots[s.root], s.result});
    for (const GradientFlow::View& v : flow.views) views_.push_back({v.held, 0});
  }
  std::string name() const override { return "CompiledBackward"; }

  /// Lets the roots lead to the nodes of a replay, which lead through those that others lead through and through held views.
  void expand() {
    if (internals_->released) return;
    Recorder::Scope alone(nullptr);
    Ends ends{next_edges_, edges_of(roots_), edges_of(roots_), edges_of(views_), true};
    for (size_t s = 0; s < roots_.size(); ++s)
      if (!joint_->inside[s]) ends.through[s] = Edge();
    std::vector<Tensor> values = replayed(ends);
    for (size_t s = 0; s < roots_.size(); ++s)
      if (const Edge& root = ends.roots[s]; root.is_valid())
        autograd::NodeAccess::edges(*root.function).at(root.input_nr) = autograd::gradient_edge(values[s]);
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
    if (GradMode::is_enabled()) return by_nodes(cts, true);
    if (Recorder* outer = Recorder::current()) outer->materialise("the backward of another compiled function");
    Recorder::Scope alone(nullptr);
    const Halves::Backward* half =
        halves_ && !watched_ ? halves_->backward(autograd::given_of(cts, internals_->results.size()), binding_)
                             : nullptr;
    return half ? by_graph(*half, cts) : by_nodes(cts, false);
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
    return std::any_of(used_.begin(), used_.end(), [&](size_t u) { return joint_->spends[u][slot]; });
  }

  static Tensor zeros_at(const Edge& edge) {
    const autograd::ResultMeta& meta = edge.function->internals().results.at(edge.input_nr);
    return autograd::zeros(meta.sizes, meta.dtype, *meta.device);
  }

  std::vector<Tensor> replayed(const Ends& ends) const {
    std::vector<Tensor> inputs;
    const std::vector<bool>& read = joint_->replayed;
    for (size_t i = 0; i < read.size(); ++i) inputs.push_back(read[i] ? inputs_[i].unpack(nullptr, name()) : Tensor());
    eager::DeviceScope scope(device_);
    AutoGradMode mode(true);  // a pass has switched it off
    return replay(*joint_, binding_, inputs, ends);
  }

  variable_list by_graph(const Halves::Backward& half, const variable_list& cts) const {
    std::vector<Tensor> held;
    std::vector<Operand> operands;
    auto add = [&](Tensor t) {
      held.push_back(std::move(t));
      operands.push_back(eager::operand_of(held.back()));
    };
    for (size_t i : half.saved) add(saved_[i].unpack(nullptr, name()));
    for (size_t i : half.inputs) add(inputs_[i].unpack(nullptr, name()));
    for (size_t s : half.slots) add(cts[s].contiguous());
    static constexpr int64_t kNone[1] = {0};
    std::vector<int64_t> sizes;
    for (ir::Expr e : half.sizes) sizes.push_back(binding_(e));
    bool nothing = false;  // what an executable finds that reads the operands whose sizes matter
    for (int64_t& size : sizes) operands.push_back({&nothing, DType::Bool, {&size, 1}, kNone});
    std::vector<Tensor> results = eager::run(half.variant, operands);
    variable_list out(next_edges_.size());
    size_t next = 0;
    for (size_t i = 0; i < out.size(); ++i) {
      if (half.gives[i]) out[i] = std::move(results[next++]);
      // From a result without a gradient comes none, which is not a zero one.
      bool flows = false;
      for (size_t s = 0; s < half.given.size(); ++s) flows = flows || (half.given[s] && joint_->reached[i][s]);
      if (flows && !out[i].defined()) out[i] = zeros_at(next_edges_[i]);
    }
    return out;
  }

  variable_list by_nodes(const variable_list& cts, bool create_graph) const {
    Ends ends;
    for (const Edge& leaf : next_edges_) ends.leaves.push_back({autograd::make_node<Entry>(leaf), 0});
    ends.roots = edges_of(roots_);
    std::vector<Tensor> roots = replayed(ends);
    std::vector<Edge> from;
    variable_list given;
    for (size_t i = 0; i < roots.size(); ++i) {
      if (i >= cts.size() || !cts[i].defined() || !roots[i].requires_grad()) continue;
      from.push_back(autograd::gradient_edge(roots[i]));
      given.push_back(cts[i]);
    }
    return autograd::gradients(from, given, ends.leaves, create_graph);
  }

  std::shared_ptr<const JointSegment> joint_;
  std::shared_ptr<const Halves> halves_;
  runtime::Device* device_;
  bool watched_ = false;  // in anomaly mode, which looks at what each operator gives
  Binding binding_;
  std::vector<autograd::Saved> inputs_, saved_;
  std::vector<HeldResult> roots_, views_;  // by slot, by held view
  std::vector<size_t> latest_, used_;      // slots of the latest pass, of those that freed what they read
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

void set_results(Node& node, const GradientFlow& flow) {
  for (const GradientFlow::Slot& s : flow.slots)
    node.internals().results.push_back(flow.roots[s.root]->internals().results[s.result]);
}

// The roots and views that others lead through, and how the segment gives way to their nodes.
std::unique_ptr<autograd::Inside> inside_of(const std::shared_ptr<SegmentNode>& node, const JointSegment& joint,
                                            const GradientFlow& flow) {
  auto out = std::make_unique<autograd::Inside>();
  for (size_t s = 0; s < flow.slots.size(); ++s)
    if (joint.inside[s]) out->nodes.push_back(flow.roots[flow.slots[s].root]);
  for (size_t k = 0; k < flow.views.size(); ++k)
    if (joint.views[k]) out->nodes.push_back(flow.views[k].held);
  if (flow.roots.size() > 1) out->roots.assign(flow.roots.begin(), flow.roots.end());
  if (out->nodes.empty() && out->roots.empty()) return nullptr;
  for (const std::weak_ptr<Node>& inside : out->nodes) inside.lock()->internals().graphs.push_back(node);
  out->expand = [segment = std::weak_ptr(node)] {
    if (auto here = segment.lock()) here->expand();
  };
  return out;
}

std::shared_ptr<Node> make_node(std::shared_ptr<const JointSegment> joint, std::shared_ptr<const Halves> halves,
                                runtime::Device* device, const SavedRun& run, const GradientFlow& flow) {
  autograd::KeepValues keep;
  Recorder::Scope alone(nullptr);  // hooks for saved tensors hold
  const JointSegment& of = *joint;
  auto node = autograd::make_node<SegmentNode>(std::move(joint), std::move(halves), device, run, flow);
  autograd::NodeAccess::edges(*node) = flow.leaves;
  node->internals().inside = inside_of(node, of, flow);
  node->internals().flows = &of.reached;  // which the node keeps
  set_results(*node, flow);
  return node;
}

}  // namespace

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
  std::shared_ptr<const JointSegment> joint = halves->joint;
  runtime::Device* device = halves->forward.program.device;
  return make_node(std::move(joint), std::move(halves), device, run, flow);
}

std::shared_ptr<Node> make_replaying_node(std::shared_ptr<const JointSegment> joint, runtime::Device& device,
                                          const SavedRun& run, const GradientFlow& flow) {
  return make_node(std::move(joint), nullptr, &device, run, flow);
}

}  // namespace brasa::capture
