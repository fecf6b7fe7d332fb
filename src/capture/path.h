#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "capture/generalise.h"
#include "capture/matching.h"
#include "capture/state.h"

namespace brasa::capture {

class Names;

/// One call's way through the traces of a place: follows a known trace event by event while the call agrees with it, goes on
/// to another where that one does, and makes a new one where none does.
class Path {
 public:
  explicit Path(detail::CompiledState& state) : state_(&state) {}
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  void begin(ResumePoint& point);

  /// The number of the first result. `view`: the first operand stands in for the first argument.
  Number call(const ops::Row& row, std::span<const CallArg> args, std::span<const ir::Value> operands, bool view,
              const Names* names = nullptr);
  Number input(const TensorImpl& t);
  /// An event that is given with all its numbers.
  Number step(Event event, const InputHint& hint = {});
  /// The segment ends here. False if nothing happened in it.
  bool end();
  Trace& trace() { return *trace_; }
  const Trace& trace() const { return *trace_; }
  ResumePoint& point() { return *point_; }
  bool started() const { return trace_ != nullptr; }
  /// The number of events so far.
  size_t position() const { return position_; }
  const Event& last() const { return trace_->events[position_ - 1]; }
  const Binding& binding() const { return binding_; }
  const ir::Type& type(Number n) const { return trace_->types[n]; }
  /// Whether the trace is kept; false beyond the recompile limit.
  bool kept() const { return !spare_; }

  /// The event that comes next where the call agrees with the trace; null where a trace is made, or two part.
  const Event* expected() const {
    if (maker_ || !trace_ || position_ == trace_->forked_at) return nullptr;
    const std::vector<Event>& events = trace_->events;
    const Event* next = events.data() + position_;
    return next < events.data() + events.size() ? next : nullptr;
  }
  Matching matching() { return {*trace_, binding_}; }
  /// Past an event that agrees: the number of its first result.
  Number advance() { return trace_->events[position_++].first; }

 private:
  void follow_latest();
  bool fits(const Trace& t, const Event* next, Binding& binding) const;
  /// The traces of the place; what is published never changes.
  std::vector<Trace*> known() const;
  bool switch_to(const Event* next);
  bool prefer_model(const Event& next);
  void fork(const Event* came, const InputHint& hint = {});
  size_t limit() const;
  void note_recompile(const std::string& reason, size_t known);

  detail::CompiledState* state_;
  ResumePoint* point_ = nullptr;
  Trace* trace_ = nullptr;  // followed or being made; null before the first event
  size_t position_ = 0;     // events that agree
  Binding binding_;
  std::unique_ptr<Generaliser> maker_;  // where trace_ grows with every event
  std::unique_ptr<Trace> made_;         // trace_, until others may see it
  bool spare_ = false;                  // it is made for this call alone
  std::vector<std::unique_ptr<Trace>> spares_;
};

}  // namespace brasa::capture
