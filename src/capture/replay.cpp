#include "capture/replay.h"

#include <algorithm>
#include <utility>

#include "capture/event_call.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "transforms/derived.h"

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
bool moves(const ops::Row& row) { return row.view || row.is_primitive() || transforms::is_put(row); }

class Replay {
 public:
  Replay(const JointSegment& joint, const Binding& binding, const std::vector<autograd::Edge>& leaves,
         const std::vector<autograd::Edge>& roots, const std::vector<autograd::Edge>& views)
      : values(joint.trace.types.size()),
        joint_(joint),
        binding_(binding),
        leaves_(leaves),
        roots_(roots),
        views_(views) {
    for (const Event& e : joint.trace.events)
      for (uint32_t r = 0; r < e.count; ++r) event_of_.push_back(&e);
  }

  void run(uint32_t event) {
    const Event& e = joint_.trace.events[event];
    auto it = joint_.sources.find(event);
    AutoGradMode mode(it != joint_.sources.end() || moves(*e.row));
    size_t operand = 0;
    std::vector<Tensor> results = run_event(e, binding_, [&](Number n) {
      size_t k = operand++;
      if (it == joint_.sources.end()) return values[n];  // it had no part in autograd
      if (k >= it->second.size() || !it->second[k].flows) return values[n].detach();
      End end = end_of(it->second[k]);
      return end.edge ? read(n, end) : values[n];
    });
    std::move(results.begin(), results.end(), values.begin() + e.first);
  }

  std::vector<Tensor> values;  // by number

 private:
  // Where a gradient leaves the replayed nodes, as one of which value; null: it stays with them.
  struct End {
    const autograd::Edge* edge;
    Number at;
  };
  End end_of(const JointSegment::Source& source) const {
    if (source.view >= 0 && !views_.empty() && views_[source.view].is_valid())
      return {&views_[source.view], source.view_at};
    if (source.leaf >= 0) return {&leaves_.at(source.leaf), source.at};
    bool through = source.root >= 0 && !roots_.empty() && roots_[source.root].is_valid();
    return {through ? &roots_[source.root] : nullptr, source.at};
  }

  // A view of a value whose gradient goes elsewhere.
  Tensor read(Number n, const End& end) {
    if (n == end.at) {
      Tensor out = values[n].detach();
      autograd::set_history(out, end.edge->function, end.edge->input_nr);
      return out;
    }
    const Event& e = *event_of_.at(n);
    bool first = true;
    auto value = [&](Number m) { return std::exchange(first, false) ? read(m, end) : values[m]; };
    return run_event(e, binding_, value).at(n - e.first);
  }

  const JointSegment& joint_;
  const Binding& binding_;
  const std::vector<autograd::Edge>&leaves_, &roots_, &views_;
  std::vector<const Event*> event_of_;  // by number
};

}  // namespace

std::vector<bool> inputs_of_replay(const JointSegment& joint) {
  std::vector<bool> live = live_values(joint), out;
  for (const Event& e : joint.trace.events)
    if (!e.row) out.push_back(live[e.first]);
  return out;
}

std::vector<Tensor> replay(const JointSegment& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const std::vector<autograd::Edge>& leaves, const std::vector<autograd::Edge>& roots,
                           const std::vector<autograd::Edge>& views) {
  std::vector<bool> live = live_values(joint);
  Replay again(joint, binding, leaves, roots, views);
  size_t input = 0;
  for (size_t i = 0; i < joint.trace.events.size(); ++i) {
    const Event& e = joint.trace.events[i];
    bool needed =
        std::find(live.begin() + e.first, live.begin() + e.first + e.count, true) != live.begin() + e.first + e.count;
    if (!e.row) {
      const Tensor& in = inputs[input++];
      if (needed) again.values[e.first] = in.detach();
    } else if (needed) {
      again.run(static_cast<uint32_t>(i));
    }
  }
  std::vector<Tensor> out;
  for (Number n : joint.roots) out.push_back(again.values[n]);
  return out;
}

}  // namespace brasa::capture
