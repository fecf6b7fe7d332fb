#include "capture/replay.h"

#include <algorithm>

#include "capture/event_call.h"
#include "support/error.h"

namespace brasa::capture {
namespace {

// The values that the roots depend on.
std::vector<bool> live_values(const JointSegment& joint) {
  std::vector<bool> live(joint.trace.types.size());
  for (Number n : joint.roots) live[n] = true;
  for (size_t i = joint.trace.events.size(); i-- > 0;) {
    const Event& e = joint.trace.events[i];
    if (std::find(live.begin() + e.first, live.begin() + e.first + e.count, true) != live.begin() + e.first + e.count)
      each_operand(e, [&](Number n) { live[n] = true; });
  }
  return live;
}

// Views and writes through them only move values, as do the conversions that dispatch adds: gradients always pass.
bool moves(const ops::Row& row) { return row.view || row.is_primitive() || !ops::find(row.name()); }

// `needs` marks the tensors that gradients flow to; null: it had no part in autograd.
std::vector<Tensor> call(const Event& e, const Binding& binding, const std::vector<Tensor>& values,
                         const std::vector<bool>* needs) {
  AutoGradMode mode(needs || moves(*e.row));
  size_t operand = 0;
  EventCall again(e, binding, [&](Number n) {
    size_t k = operand++;
    return !needs || (k < needs->size() && (*needs)[k]) ? values[n] : values[n].detach();
  });
  return eager::call_list(eager::op(*e.row), again.args());
}

}  // namespace

std::vector<Tensor> replay(const JointSegment& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const std::vector<bool>& written) {
  std::vector<bool> live = live_values(joint);
  std::vector<Tensor> values(live.size());
  size_t input = 0;
  for (size_t i = 0; i < joint.trace.events.size(); ++i) {
    const Event& e = joint.trace.events[i];
    bool needed =
        std::find(live.begin() + e.first, live.begin() + e.first + e.count, true) != live.begin() + e.first + e.count;
    if (!e.row) {
      BRASA_CHECK(
          !needed || !written[input],
          "second derivatives through a compiled function that writes into a tensor which they depend on are not "
          "there: compile the function without the write, or call it uncompiled");
      values[e.first] = inputs[input++];
    } else if (needed) {
      auto it = joint.needs.find(static_cast<uint32_t>(i));
      std::vector<Tensor> results = call(e, binding, values, it == joint.needs.end() ? nullptr : &it->second);
      std::move(results.begin(), results.end(), values.begin() + e.first);
    }
  }
  std::vector<Tensor> out;
  for (Number n : joint.roots) out.push_back(values[n]);
  return out;
}

}  // namespace brasa::capture
