// The part of a session that finds out how gradients flow through a segment, and records the backward pass.
#include <algorithm>

#include "capture/session.h"
#include "capture/uncompiled.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"

namespace brasa::capture {

void Session::made(const std::shared_ptr<autograd::Node>& node, uint32_t call, std::span<const Tensor> results) {
  RecordedNode recorded{node, call, {}};
  for (const Tensor& t : results) {
    bool carries = t.defined() && (is_floating(t.scalar_type()) || brasa::is_complex(t.scalar_type()));
    recorded.results.push_back(carries ? number_of(t) : kNoNumber);
  }
  nodes_.push_back(std::move(recorded));
}

std::optional<GradientFlow> Session::find_gradient_flow() {
  // A pass that is under way goes through the nodes themselves.
  if (nodes_.empty() || autograd::in_backward() || state_.options.backend == "eager") return std::nullopt;
  std::vector<const Tensor*> own;
  for (const auto& [storage, tensors] : snapshots_)
    for (const Tensor& t : tensors) own.push_back(&t);
  for (const BoundInput& in : inputs_) own.push_back(&in.tensor);
  return gradient_flow(nodes_, own, first_sequence_);
}

std::shared_ptr<const Joint> Session::joint_for(const GradientFlow& flow) {
  auto& joints = path_->trace().joints;
  auto it = std::find_if(joints.begin(), joints.end(), [&](const auto& joint) {
    return joint->key == flow.key && joint->symbols == path_->binding().symbols;
  });
  if (it == joints.end()) {
    // One for each set of sizes; beyond the limit the nodes themselves run.
    if (static_cast<int>(joints.size()) >= state_.options.recompile_limit) return nullptr;
    it = joints.insert(it, record_joint(flow));
  }
  return (*it)->roots.empty() ? nullptr : *it;
}

// Records the backward pass behind the segment's own events, in a trace of its own. Without roots if there is none.
std::shared_ptr<const Joint> Session::record_joint(const GradientFlow& flow) {
  auto joint = std::make_shared<Joint>();
  joint->key = flow.key;
  joint->symbols = path_->binding().symbols;
  joint->trace = path_->trace().sized(path_->binding());
  joint->trace.own_inputs = inputs_.size();
  joint->inputs = inputs_.size() + joint->trace.arguments.size();
  joint->events = joint->trace.events.size();
  joint->needs.insert(flow.needs.begin(), flow.needs.end());
  Path aside(state_);
  Binding binding = path_->binding();
  binding.symbols.clear();
  aside.extend(joint->trace, binding);
  Path* const path = std::exchange(path_, &aside);
  const size_t held = held_.size(), inputs = inputs_.size();
  // Their hooks are for the gradients of a real pass.
  std::vector<autograd::Node::Internals> hooks(flow.roots.size());
  auto swap_hooks = [&] {
    for (size_t i = 0; i < hooks.size(); ++i) {
      autograd::Node::Internals& in = flow.roots[i]->internals();
      std::swap(in.tensor_hooks, hooks[i].tensor_hooks);
      std::swap(in.pre_hooks, hooks[i].pre_hooks);
      std::swap(in.retains, hooks[i].retains);
    }
  };
  swap_hooks();
  try {
    std::vector<autograd::Edge> from;
    std::vector<Tensor> cts;
    for (const GradientFlow::Slot& s : flow.slots) {
      const ir::Type& type = path_->type(s.number);
      Event event;
      event.guard.sizes = type.shape;
      event.guard.dtype = type.dtype;
      joint->roots.push_back(s.number);
      from.push_back({flow.roots[s.root], s.result});
      cts.push_back(make_recorded(path_->step(std::move(event), true)));
    }
    for (const Tensor& g : autograd::gradients(from, cts, flow.leaves, false))
      joint->gradients.push_back(g.defined() ? number_of(g) : kNoNumber);
  } catch (const Error&) {
    joint->roots.clear();  // an operator without a derivative: the error comes if the pass really runs
  }
  swap_hooks();
  for (size_t i = held; i < held_.size(); ++i) held_[i].storage->end_recording();
  held_.erase(held_.begin() + static_cast<int64_t>(held), held_.end());
  if (inputs_.size() != inputs) joint->roots.clear();
  while (inputs_.size() > inputs) {
    inputs_of_.erase(impl_of(inputs_.back().tensor)->storage->root());
    inputs_.pop_back();
  }
  path_ = path;
  return joint;
}

// Memory for what the forward half leaves for backward, and operands for what it has to compute for that.
void Session::keep_for_backward(const Variant& variant, const std::vector<Held*>& fresh, SavedRun& run,
                                std::vector<compiler::Operand>& outputs) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  auto intermediate = variant.halves->intermediates.begin();
  for (const transforms::Saved& s : variant.halves->saved) {
    switch (s.from) {
      case transforms::Saved::From::Input:
        run.saved.push_back(variant.halves->written[s.index] ? run.inputs[s.index].clone() : run.inputs[s.index]);
        break;
      case transforms::Saved::From::Output: {
        auto end = variant.deliveries.begin() + s.index;
        auto k = std::count_if(variant.deliveries.begin(), end, [](const Delivery& d) { return d.into < 0; });
        const Held& h = *fresh[k];
        run.saved.push_back(make_tensor(h.storage, h.dtype, h.sizes, h.strides, 0));
        break;
      }
      case transforms::Saved::From::Intermediate: {
        Sizes sizes;
        for (ir::Expr e : intermediate->shape) sizes.push_back(e.constant());
        run.saved.push_back(make_tensor(sizes, intermediate++->dtype));
        outputs.push_back(operand_of(run.saved.back()));
        break;
      }
    }
  }
}

}  // namespace brasa::capture
