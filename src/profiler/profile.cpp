#include <brasa/profiler.h>

#include <optional>
#include <utility>

#include "runtime/spans.h"
#include "support/error.h"
#include "support/source_line.h"

namespace brasa::profiler {
namespace {

enum class Action { None, Warmup, Record };

Action action_of(const Schedule& s, int64_t step) {
  int64_t turn = s.wait + s.warmup + s.active;
  step -= s.skip_first;
  if (step < 0 || (s.repeat > 0 && step / turn >= s.repeat)) return Action::None;
  step %= turn;
  return step < s.wait ? Action::None : step < s.wait + s.warmup ? Action::Warmup : Action::Record;
}

// Whether a turn is over after this step.
bool ends_turn(const Schedule& s, int64_t step) {
  return action_of(s, step) == Action::Record && (step - s.skip_first + 1) % (s.wait + s.warmup + s.active) == 0;
}

Kind kind_of(runtime::SpanKind kind) {
  switch (kind) {
    case runtime::SpanKind::Operator: return Kind::Operator;
    case runtime::SpanKind::Kernel: return Kind::Kernel;
    case runtime::SpanKind::Compilation: return Kind::Compilation;
    case runtime::SpanKind::Range: break;
  }
  return Kind::Range;
}

std::vector<Event> events_of(std::vector<runtime::Span> spans) {
  std::vector<Event> out;
  int64_t start = spans.empty() ? 0 : spans[0].begin;
  for (runtime::Span& s : spans)
    out.push_back({kind_of(s.kind), std::move(s.name), s.device, s.thread, 1e-3 * static_cast<double>(s.begin - start),
                   1e-3 * static_cast<double>(s.end - s.begin), s.bytes, s.flops, s.memory, std::move(s.shapes),
                   s.stack.empty() ? std::string() : users_line(s.stack)});
  return out;
}

}  // namespace

struct profile::State {
  ProfileOptions options;
  int64_t step = 0;
  Action action = Action::None;
  bool stopped = false;
  std::vector<Event> events;

  void enter(Action next) {
    if (next != Action::None) {
      runtime::start_spans({options.record_shapes, options.with_stack});
      events.clear();
    }
    action = next;
  }
  void leave() {
    if (action == Action::None) return;
    std::vector<runtime::Span> spans = runtime::stop_spans();
    if (action == Action::Record) events = events_of(std::move(spans));
    action = Action::None;
  }
};

profile::profile(ProfileOptions options) : state_(std::make_unique<State>()) {
  if (const auto& s = options.schedule) {
    BRASA_CHECK(
        s->wait >= 0 && s->warmup >= 0 && s->active > 0 && s->repeat >= 0 && s->skip_first >= 0,
        "profile: expected a schedule of at least one active step and no negative numbers, got wait = ", s->wait,
        ", warmup = ", s->warmup, ", active = ", s->active, ", repeat = ", s->repeat, ", skip_first = ", s->skip_first);
  }
  state_->options = std::move(options);
  state_->enter(state_->options.schedule ? action_of(*state_->options.schedule, 0) : Action::Record);
}

profile::~profile() {
  if (!state_->stopped) state_->leave();
}

void profile::step() {
  State& s = *state_;
  if (s.stopped || !s.options.schedule) return;
  const Schedule& schedule = *s.options.schedule;
  int64_t before = s.step++;
  Action next = action_of(schedule, s.step);
  bool ready = ends_turn(schedule, before);
  if (next != s.action || ready) s.leave();
  if (ready && s.options.on_trace_ready) s.options.on_trace_ready(*this);
  if (s.action != next) s.enter(next);
}

void profile::stop() {
  State& s = *state_;
  if (std::exchange(s.stopped, true)) return;
  bool ready = s.action == Action::Record;
  s.leave();
  if (ready && s.options.on_trace_ready) s.options.on_trace_ready(*this);
}

const std::vector<Event>& profile::events() const { return state_->events; }

struct record_function::Range {
  runtime::HostSpan span;
};
record_function::record_function(std::string_view name) {
  if (runtime::recording_spans()) range_.reset(new Range{{runtime::SpanKind::Range, name}});
}
record_function::~record_function() = default;

}  // namespace brasa::profiler
