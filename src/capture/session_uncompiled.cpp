// The part of a session that runs a segment operator by operator.
#include <brasa/autograd.h>

#include "capture/session.h"
#include "capture/uncompiled.h"
#include "support/error.h"
#include "tensor/execute.h"

namespace brasa::capture {

// A run that failed has written nothing. What came before the operator that failed happens all the same; what came behind it is lost.
void Session::deliver_until_error() {
  std::vector<Tensor> inputs;
  for (const BoundInputs::Bound& in : inputs_) inputs.push_back(in.tensor);
  for (Held& h : held_)
    if (h.input >= 0) h.storage->end_recording();
  size_t reached = path_.position();
  std::vector<Tensor> values = values_until_error(path_.trace(), path_.binding(), inputs, reached);
  for (size_t i = writes_.size(); i-- > 0 && writes_[i].position > reached;)
    held_[writes_[i].held].value = writes_[i].before;
  for (Held& h : held_)
    if (values[h.value].defined()) store(h, values[h.value]);
  lose();
}

SavedRun Session::kept_for_replay(const JointSegment& joint, const std::vector<Delivery>& deliveries,
                                  const std::vector<Tensor>& inputs) const {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  SavedRun run;
  run.binding = path_.binding();
  run.inputs = inputs;
  for (const Delivery& d : deliveries)
    if (d.into >= 0 && joint.replayed[d.into]) run.inputs[d.into] = run.inputs[d.into].clone();
  return run;
}

void Session::run_uncompiled(const std::vector<Delivery>& deliveries, const std::shared_ptr<const JointSegment>& joint,
                             const std::optional<GradientFlow>& flow) {
  if (work_) {
    work_->beyond_limit = true;
    work_->comparable = work_->comparable && device().on_host();
  }
  std::vector<Tensor> inputs;
  for (const BoundInputs::Bound& in : inputs_) inputs.push_back(in.tensor);
  for (Held& h : held_)
    if (h.input >= 0) h.storage->end_recording();
  SavedRun kept;
  if (joint) kept = kept_for_replay(*joint, deliveries, inputs);
  eager::DeviceScope scope(device_);
  std::vector<Tensor> values;
  try {
    values = capture::run_uncompiled(path_.trace(), path_.position(), path_.binding(), inputs, deliveries);
  } catch (const Error&) {
    if (joint) redirect(*flow, make_failed_node(*flow));
    deliver_until_error();
    throw;
  }
  if (joint) redirect(*flow, make_replaying_node(joint, device(), kept, *flow));
  size_t i = 0;
  for (Held& h : held_)
    if (h.input >= 0 || h.storage->use_count() > 1) store(h, values[i++]);
}

}  // namespace brasa::capture
