// The part of a session that finds out how gradients flow through a segment.
#include <algorithm>

#include "capture/session.h"
#include "support/error.h"
#include "support/log.h"
#include "tensor/autograd/meta.h"
#include "tensor/autograd/record.h"
#include "tensor/execute.h"

namespace brasa::capture {

void Session::made(const std::shared_ptr<autograd::Node>& node, uint32_t call, std::span<const Tensor> results) {
  RecordedNode recorded{node, call, {}};
  for (const Tensor& t : results) {
    bool carries = t.defined() && (is_floating(t.scalar_type()) || brasa::is_complex(t.scalar_type()));
    recorded.results.push_back(carries ? number_of(t) : kNoNumber);
  }
  nodes_.push_back(std::move(recorded));
}

Tensor Session::result_of(const autograd::Node& node, uint32_t result) {
  // A node that is gone may have left its address to a later one, which is entered behind it.
  for (; known_nodes_ < nodes_.size(); ++known_nodes_) {
    auto made = nodes_[known_nodes_].node.lock();
    if (!made) continue;
    const autograd::Node* inner = autograd::NodeAccess::inner(*made);
    position_of_[inner ? inner : made.get()] = static_cast<uint32_t>(known_nodes_);
  }
  auto it = position_of_.find(&node);
  if (it == position_of_.end()) return {};
  const RecordedNode& recorded = nodes_[it->second];
  const Event& e = path_.trace().events.at(recorded.event);
  return recorded.results.empty() || result >= e.count ? Tensor() : make_recorded(e.first + result);
}

// Nodes that stay keep what eager ones would of their results: where it is delivered anyway, or somebody is to see its gradient. Whether
// any stays.
bool Session::keep_results() {
  if (nodes_.empty()) return false;
  bool any = false;
  std::unordered_map<Number, size_t> delivered;  // found where a node is left: a step that has run backward has none
  auto find_delivered = [&] {
    for (size_t i = 0; i < held_.size(); ++i)
      if (held_[i].input >= 0 || held_[i].storage->use_count() > 1) delivered.emplace(held_[i].value, i);
  };
  for (const RecordedNode& r : nodes_) {
    auto node = r.node.lock();
    any = any || node;
    if (!node || r.results.empty() || autograd::NodeAccess::inner(*node)) continue;
    if (delivered.empty()) find_delivered();
    Number first = path_.trace().events.at(r.event).first;
    bool wanted = node->internals().has_hooks();
    for (Number n = first; n < first + r.results.size(); ++n) wanted = wanted || delivered.count(n);
    if (!wanted) continue;
    autograd::keep_results(*node, [&](uint32_t result) {
      auto it = delivered.find(first + result);
      if (it == delivered.end()) return node->internals().has_hooks() ? make_recorded(first + result) : Tensor();
      const Held& h = held_[it->second];
      return make_tensor(h.storage, h.dtype, h.sizes(), h.strides(), h.offset);
    });
  }
  return any;
}

std::optional<GradientFlow> Session::find_gradient_flow() {
  // A pass that is under way goes through the nodes themselves.
  if (nodes_.empty() || autograd::in_backward() || state_.options.backend == "eager") return std::nullopt;
  std::vector<const Tensor*> own;
  for (const auto& [storage, tensors] : snapshots_)
    for (const Tensor& t : tensors) own.push_back(&t);
  for (const BoundInputs::Bound& in : inputs_) own.push_back(&in.tensor);
  return gradient_flow(nodes_, own, first_sequence_);
}

// Null where the nodes themselves run.
std::shared_ptr<const JointSegment> Session::joint_for(const GradientFlow& flow) {
  std::lock_guard lock(state_.mutex);
  Trace& trace = path_.trace();
  const Binding& binding = path_.binding();
  auto usable = [](const std::shared_ptr<const JointSegment>& joint) { return joint->derivation ? joint : nullptr; };
  for (const auto& joint : trace.joints)
    if (joint->key == flow.key && joint->conditions.hold(binding.symbols.data())) return usable(joint);
  if (static_cast<int>(trace.joints.size()) >= state_.options.recompile_limit) return nullptr;
  return usable(trace.joints.emplace_back(derive(trace, binding, nodes_, flow)));
}

void keep_for_backward(const Halves& halves, const std::vector<Delivery>& deliveries, std::span<const Fresh> fresh,
                       runtime::Device& device, SavedRun& run, std::vector<compiler::Operand>& outputs) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  const std::vector<bool>& replayed = halves.joint->replayed;
  for (size_t i = 0; i < replayed.size(); ++i)
    if (halves.written[i] && replayed[i]) run.inputs[i] = run.inputs[i].clone();
  auto overwritten = [&](int i) {
    return halves.written[i] && !(static_cast<size_t>(i) < replayed.size() && replayed[i]);
  };
  auto intermediate = halves.intermediates.begin();
  for (const transforms::Saved& s : halves.saved) {
    switch (s.from) {
      case transforms::Saved::From::Input:
        run.saved.push_back(overwritten(s.index) ? run.inputs[s.index].clone() : run.inputs[s.index]);
        break;
      case transforms::Saved::From::Output: {
        auto end = deliveries.begin() + s.index;
        auto k = std::count_if(deliveries.begin(), end, [](const Delivery& d) { return d.into < 0; });
        run.saved.push_back(make_tensor(fresh[k].storage, fresh[k].dtype, fresh[k].at.sizes, fresh[k].at.strides, 0));
        break;
      }
      case transforms::Saved::From::Intermediate: {
        Sizes sizes;
        for (ir::Expr e : intermediate->shape) sizes.push_back(run.binding(e));
        run.saved.push_back(make_tensor(sizes, intermediate++->dtype, device));
        outputs.push_back(eager::operand_of(run.saved.back()));
        break;
      }
    }
  }
}

}  // namespace brasa::capture
