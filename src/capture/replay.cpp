#include "capture/replay.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
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
    if (std::find(live.begin() + e.first, live.begin() + e.first + e.count, true) == live.begin() + e.first + e.count)
      continue;
    each_operand(e, [&](Number n) { live[n] = true; });
    if (auto it = joint.sources.find(static_cast<uint32_t>(i)); it != joint.sources.end())
      for (const JointSegment::Source& source : it->second)
        if (source.made != kNoNumber) live[source.made] = true;
  }
  return live;
}

// Views and writes through them only move values, as do the conversions that dispatch adds: gradients always pass.
bool moves(const ops::Row& row) { return row.view || row.is_primitive() || transforms::is_put(row); }

class Replay {
 public:
  Replay(const JointSegment& joint, const Binding& binding, const Ends& ends)
      : values(joint.trace.types.size()), joint_(joint), binding_(binding), ends_(ends) {
    for (const Event& e : joint.trace.events)
      for (uint32_t r = 0; r < e.count; ++r) event_of_.push_back(&e);
    for (size_t s = 0; s < joint.roots.size(); ++s) slots_.emplace(joint.roots[s], s);
    if (ends.in_place) find_numbers();
  }

  void run(uint32_t event) {
    const Event& e = joint_.trace.events[event];
    auto it = joint_.sources.find(event);
    AutoGradMode mode(it != joint_.sources.end() || moves(*e.row));
    size_t operand = 0;
    if (!numbers_.empty()) earlier_.emplace().next(numbers_[event]);
    uint64_t first_made = autograd::next_sequence_nr();
    std::vector<Tensor> results = run_event(e, binding_, [&](Number n) {
      size_t k = operand++;
      if (it == joint_.sources.end()) return values[n];  // it had no part in autograd
      if (k >= it->second.size() || !it->second[k].flows) return values[n].detach();
      End end = end_of(it->second[k]);
      return end.edge.is_valid() ? read(n, end) : values[n];
    });
    earlier_.reset();
    std::move(results.begin(), results.end(), values.begin() + e.first);
    for (Number n = e.first; n < e.first + e.count; ++n)
      for (auto [slot, end] = slots_.equal_range(n); slot != end; ++slot)
        stand_for(values[n], ends_.roots[slot->second], first_made);
  }

  std::vector<Tensor> values;  // by number

 private:
  // Where the gradient of which value goes instead of to what made it in this replay; invalid: nowhere else.
  struct End {
    autograd::Edge edge;
    Number at;
  };
  End end_of(const JointSegment::Source& source) const {
    if (source.view >= 0 && !ends_.views.empty() && ends_.views[source.view].is_valid())
      return {ends_.views[source.view], source.view_at};
    if (source.leaf >= 0) return {ends_.leaves.at(source.leaf), source.at};
    if (source.root >= 0 && !ends_.through.empty() && ends_.through[source.root].is_valid())
      return {ends_.through[source.root], source.at};
    bool other = source.made != source.at && source.made != kNoNumber && values[source.made].requires_grad();
    return {other ? autograd::gradient_edge(values[source.made]) : autograd::Edge(), source.at};
  }

  // By event: the number of its node in the recording, as far as the roots' tell.
  void find_numbers() {
    const std::vector<Event>& events = joint_.trace.events;
    std::vector<uint64_t> known(events.size(), 0);
    bool any = false;
    for (size_t i = 0; i < events.size(); ++i)
      for (Number n = events[i].first; n < events[i].first + events[i].count; ++n)
        for (auto [slot, end] = slots_.equal_range(n); slot != end; ++slot)
          if (const autograd::Edge& root = ends_.roots[slot->second]; root.is_valid()) {
            known[i] = root.function->sequence_nr();
            any = true;
          }
    if (!any) return;
    numbers_.assign(events.size(), autograd::next_sequence_nr());
    uint64_t next = 0;  // of the event behind; 0: none is known
    for (size_t i = events.size(); i-- > 0;) {
      bool has_node = joint_.sources.count(static_cast<uint32_t>(i)) || (events[i].row && moves(*events[i].row));
      if (known[i])
        next = known[i];
      else if (has_node && next > 1)
        --next;
      if (next) numbers_[i] = next;
    }
    // Not before an earlier root's, whose operators may have had nodes that this cannot know of.
    uint64_t least = 0;
    for (size_t i = 0; i < events.size(); ++i) {
      if (known[i]) least = known[i];
      numbers_[i] = std::max(numbers_[i], least);
    }
  }

  // The node of this result, if the call made one, is a root's once more.
  static void stand_for(const Tensor& result, const autograd::Edge& root, uint64_t first_made) {
    const std::shared_ptr<autograd::Node>& node = result.grad_fn();
    if (node && root.is_valid() && node->sequence_nr() >= first_made && root.input_nr == result.output_nr())
      node->internals().stands_for = root.function;
  }

  // A view of a value whose gradient goes elsewhere.
  Tensor read(Number n, const End& end) {
    if (n == end.at) {
      Tensor out = values[n].detach();
      autograd::set_history(out, end.edge.function, end.edge.input_nr);
      return out;
    }
    const Event& e = *event_of_.at(n);
    bool first = true;
    auto value = [&](Number m) { return std::exchange(first, false) ? read(m, end) : values[m]; };
    return run_event(e, binding_, value).at(n - e.first);
  }

  const JointSegment& joint_;
  const Binding& binding_;
  const Ends& ends_;
  std::vector<const Event*> event_of_;  // by number
  std::unordered_multimap<Number, size_t> slots_;
  std::vector<uint64_t> numbers_;  // by event, or empty
  std::optional<autograd::EarlierNumbers> earlier_;
};

}  // namespace

std::vector<bool> inputs_of_replay(const JointSegment& joint) {
  std::vector<bool> live = live_values(joint), out;
  for (const Event& e : joint.trace.events)
    if (!e.row) out.push_back(live[e.first]);
  return out;
}

std::vector<Tensor> replay(const JointSegment& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const Ends& ends) {
  std::vector<bool> live = live_values(joint);
  Replay again(joint, binding, ends);
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
