// The part of a session that finds out how gradients flow through a segment, and records the backward pass.
#include <algorithm>

#include "capture/session.h"
#include "capture/uncompiled.h"
#include "support/error.h"
#include "support/log.h"
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
  for (const BoundInputs::Input& in : inputs_) own.push_back(&in.tensor);
  return gradient_flow(nodes_, own, first_sequence_);
}

// A backward pass that was recorded for some sizes is that of others if it is recorded again and gives the same; this often
// enough for an expression that fits by chance to show.
constexpr size_t kConfirmed = 3;

std::shared_ptr<const Joint> Session::joint_for(const GradientFlow& flow) {
  Trace& trace = path_->trace();
  const Binding& binding = path_->binding();
  auto usable = [](const std::shared_ptr<Joint>& joint) { return joint->roots.empty() ? nullptr : joint; };
  std::shared_ptr<Joint> general, model;
  for (const auto& joint : trace.joints) {
    if (joint->key != flow.key) continue;
    if (!joint->symbolic && joint->sizes[0] == binding.symbols) return usable(joint);
    (joint->symbolic ? general : model) = joint;
  }
  if (!model && trace.model)
    for (const auto& joint : trace.model->joints)
      if (joint->key == flow.key && !joint->symbolic) model = joint;
  if (general && serves(*general, flow)) return general;
  if (!general && model && !model->roots.empty() && !binding.symbols.empty()) {
    std::shared_ptr<Joint> made = record_joint(flow, model.get());
    if (!made->roots.empty()) return trace.joints.emplace_back(std::move(made));
  }
  // One for each set of sizes; beyond the limit the nodes themselves run.
  if (static_cast<int>(trace.joints.size()) >= state_.options.recompile_limit) return nullptr;
  return usable(trace.joints.emplace_back(record_joint(flow, nullptr)));
}

std::shared_ptr<const Halves> Session::compiled_halves(const std::shared_ptr<const Joint>& joint,
                                                       const std::vector<Delivery>& deliveries,
                                                       std::vector<ir::Fact>& assumed, const Placement& place) {
  ir::Facts none;
  if (!joint->symbolic) return compile_halves(joint, deliveries, state_.backend, state_.options, none, place);
  try {
    ir::Facts facts(path_->binding().symbols);
    auto halves = compile_halves(joint, deliveries, state_.backend, state_.options, facts, place);
    assumed = facts.facts();
    return halves;
  } catch (const std::exception& e) {
    if (logs("recompiles")) log_line("recompiles", str("the graph is made for these sizes alone: ", e.what()));
  }
  auto sized = std::make_shared<Joint>();
  sized->key = joint->key;
  sized->sizes.push_back(path_->binding().symbols);
  sized->trace = joint->trace.sized(path_->binding());
  sized->inputs = joint->inputs;
  sized->events = joint->events;
  sized->roots = joint->roots;
  sized->gradients = joint->gradients;
  sized->needs = joint->needs;
  path_->trace().joints.push_back(sized);
  return compile_halves(sized, deliveries, state_.backend, state_.options, none, place);
}

// Whether a joint with symbols is right for this call's.
bool Session::serves(Joint& joint, const GradientFlow& flow) {
  const Binding& binding = path_->binding();
  for (size_t i = joint.events; i < joint.trace.events.size(); ++i)
    for (const ir::Fact& f : joint.trace.events[i].facts)
      if (!binding.holds(f)) return false;
  if (joint.sizes.size() >= kConfirmed) return true;
  if (std::find(joint.sizes.begin(), joint.sizes.end(), binding.symbols) != joint.sizes.end()) return true;
  Path aside(state_);
  aside.check(joint.trace, joint.events, binding);
  std::vector<Number> gradients;
  if (!record_backward(aside, flow, gradients) || gradients != joint.gradients ||
      aside.position() != joint.trace.events.size())
    return false;
  joint.sizes.push_back(binding.symbols);
  return true;
}

// Records the backward pass behind the segment's own events, in a trace of its own. Without roots if there is none, or if it
// is not the model's for other sizes. Without a model it is for this call's sizes alone.
std::shared_ptr<Joint> Session::record_joint(const GradientFlow& flow, const Joint* model) {
  auto joint = std::make_shared<Joint>();
  Binding binding = path_->binding();
  joint->key = flow.key;
  joint->symbolic = model != nullptr;
  joint->sizes.push_back(binding.symbols);
  joint->trace = model ? path_->trace().copy() : path_->trace().sized(binding);
  joint->trace.own_inputs = inputs_.size();
  joint->inputs = inputs_.size() + joint->trace.arguments.size();
  joint->events = joint->trace.events.size();
  joint->needs.insert(flow.needs.begin(), flow.needs.end());
  if (!model) binding.symbols.clear();
  for (const GradientFlow::Slot& s : flow.slots) joint->roots.push_back(s.number);
  Path aside(state_);
  aside.extend(joint->trace, binding, model ? &model->trace : nullptr);
  if (!record_backward(aside, flow, joint->gradients) || (model && !aside.generalised())) joint->roots.clear();
  joint->trace.sample = aside.binding();
  return joint;
}

// False if an operator has no derivative (the error comes if the pass really runs), or the pass is not the expected one.
bool Session::record_backward(Path& aside, const GradientFlow& flow, std::vector<Number>& gradients) {
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
  bool good = true;
  try {
    std::vector<autograd::Edge> from;
    std::vector<Tensor> cts;
    for (const GradientFlow::Slot& s : flow.slots) {
      const ir::Type& type = path_->type(s.number);
      Event event;
      event.guard.sizes = type.shape;
      event.guard.dtype = type.dtype;
      from.push_back({flow.roots[s.root], s.result});
      cts.push_back(make_recorded(path_->step(std::move(event), true)));
    }
    for (const Tensor& g : autograd::gradients(from, cts, flow.leaves, false))
      gradients.push_back(g.defined() ? number_of(g) : kNoNumber);
  } catch (const Error&) {
    good = false;
  } catch (const Path::Mismatch&) {
    good = false;
  }
  swap_hooks();
  for (size_t i = held; i < held_.size(); ++i) held_[i].storage->end_recording();
  held_.erase(held_.begin() + static_cast<int64_t>(held), held_.end());
  good = good && inputs_.size() == inputs;
  while (inputs_.size() > inputs) inputs_.remove_last();
  path_ = path;
  return good;
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
        for (ir::Expr e : intermediate->shape) sizes.push_back(path_->binding()(e));
        run.saved.push_back(make_tensor(sizes, intermediate++->dtype, device()));
        outputs.push_back(operand_of(run.saved.back()));
        break;
      }
    }
  }
}

}  // namespace brasa::capture
