#include "capture/path.h"

#include <algorithm>
#include <atomic>

#include "capture/describe.h"
#include "capture/names.h"
#include "capture/stance.h"
#include "support/error.h"
#include "support/log.h"
#include "tensor/autograd/checkpoint.h"
#include "tensor/autograd/meta.h"

namespace brasa::capture {

namespace {

Binding unbound(const Trace& t) {
  Binding b;
  b.symbols.assign(t.sample.symbols.size(), Binding::kUnbound);
  b.numbers.resize(t.arguments.size());
  return b;
}

}  // namespace

void Path::begin(ResumePoint& point) {
  point_ = &point;
  trace_ = nullptr;
  position_ = 0;
  maker_.reset();
  if (made_) spares_.push_back(std::move(made_));
  spare_ = false;
  trace_ = std::atomic_ref(point.latest).load(std::memory_order_acquire);
  if (trace_) binding_ = unbound(*trace_);
}

std::vector<Trace*> Path::known() const {
  std::lock_guard lock(state_->mutex);
  std::vector<Trace*> out;
  for (const auto& t : point_->traces) out.push_back(t.get());
  return out;
}

Number Path::call(const ops::Row& row, std::span<const CallArg> args, std::span<const ir::Value> operands, bool view,
                  const Names* names) {
  Numbered call{row, args, operands, view};
  // Calls are compared with what is known before anything is made of them: agreeing is the rule.
  if (const Event* next = expected()) {
    Matching agreement = matching();
    if (agreement.call(*next, call)) return advance();
    agreement.undo();
  }
  Event event;
  event.row = &row;
  event.view = view;
  event.args = call.node_args();
  uint64_t exact = names && trace_ ? names->put_in(event, args) : 0;
  return step(std::move(event), {.exact = exact});
}

Number Path::input(const TensorImpl& t) {
  if (const Event* next = expected()) {
    Matching agreement = matching();
    if (agreement.input(*next, t)) return advance();
    agreement.undo();
  }
  Event event;
  event.guard.dtype = t.dtype;
  event.guard.weak = t.weak;
  event.guard.by_value = goes_by_value(t);
  event.guard.sizes.assign(t.sizes.begin(), t.sizes.end());
  if (!t.contiguous) event.guard.strides.assign(t.strides.begin(), t.strides.end());
  // Parameters keep their sizes, and so does what lies in the block of arguments.
  bool fixed = event.guard.by_value || (t.autograd && t.autograd->requires_grad);
  return step(std::move(event), {fixed, event.guard.by_value ? 0 : t.dynamic_dims});
}

Number Path::step(Event event, const InputHint& hint) {
  event.backward = autograd::in_backward();
  event.checkpoint = autograd::checkpoint_number();
  if (!maker_) {
    bool agrees = false;
    if (trace_ && position_ < trace_->events.size()) {
      if (position_ == trace_->forked_at) agrees = prefer_model(event);
      if (!agrees) {
        Matching matching(*trace_, binding_);
        agrees = matching.event(trace_->events[position_], event, binding_);
        if (!agrees) matching.undo();
      }
    }
    if (agrees || switch_to(&event)) return advance();
    fork(&event, hint);
    return advance();
  }
  maker_->add(event, hint);
  return advance();
}

// What a trace was generalised from is faster where it fits.
bool Path::prefer_model(const Event& next) {
  Trace* model = trace_->model;
  if (!model) return false;
  Binding binding = unbound(*model);
  if (!fits(*model, &next, binding)) return false;
  trace_ = model;
  binding_ = std::move(binding);
  return true;
}

// Whether the events so far are the first ones of t, and `next` the one behind; null: t ends here.
bool Path::fits(const Trace& t, const Event* next, Binding& binding) const {
  if (next ? t.events.size() <= position_ : t.events.size() != position_) return false;
  Matching matching(t, binding);
  // Most traces differ in what comes next.
  if (next && !alike(t.events[position_], *next)) return false;
  for (size_t i = 0; i < position_; ++i)
    if (!matching.event(t.events[i], trace_->events[i], binding_)) return false;
  return !next || matching.event(t.events[position_], *next, binding_);
}

bool Path::switch_to(const Event* next) {
  for (Trace* t : known()) {
    if (t == trace_) continue;
    Binding binding = unbound(*t);
    if (!fits(*t, next, binding)) continue;
    trace_ = t;
    binding_ = std::move(binding);
    return true;
  }
  return false;
}

// From here on a new trace: the events so far are those of the one followed. `came` is null at the end of a segment.
void Path::fork(const Event* came, const InputHint& hint) {
  auto fresh = std::make_unique<Trace>();
  Binding binding;
  if (trace_) {
    auto bound = std::find(binding_.symbols.begin(), binding_.symbols.end(), Binding::kUnbound);
    binding.symbols.assign(binding_.symbols.begin(), bound);
    for (const Argument& a : trace_->arguments) {
      size_t k = fresh->arguments.size();
      if (a.size ? (*a.size)->id >= binding.symbols.size() : !binding_.numbers[k].has_value()) break;
      fresh->arguments.push_back(a);
      binding.numbers.push_back(binding_.numbers[k]);
    }
    fresh->own = trace_->own;
    std::erase_if(fresh->own, [&](uint32_t id) { return id >= binding.symbols.size(); });
    fresh->events.assign(trace_->events.begin(), trace_->events.begin() + static_cast<int64_t>(position_));
    size_t results = fresh->events.empty() ? 0 : fresh->events.back().first + fresh->events.back().count;
    fresh->types.assign(trace_->types.begin(), trace_->types.begin() + static_cast<int64_t>(results));
  }
  std::swap(binding_, binding);
  auto maker = std::make_unique<Generaliser>(*fresh, binding_, state_->options.dynamic);
  // The model is the trace that agreed up to here, or another one that goes on as this call does.
  Trace* model = nullptr;
  auto consider = [&](Trace* t) {
    if (model || !came || t->events.size() <= position_ || !alike(t->events[position_], *came)) return;
    if (maker->set_model(*t)) model = t;
  };
  std::vector<Trace*> here = known();
  if (trace_) consider(trace_);
  for (size_t i = here.size(); i-- > 0;) consider(here[i]);
  if (point_->model && here.empty()) {
    std::lock_guard lock(state_->mutex);
    for (const auto& t : point_->model->traces) consider(t.get());
  }
  const Event* expected = trace_ && position_ < trace_->events.size() ? &trace_->events[position_] : nullptr;
  std::string reason = "nothing is compiled for this place yet";
  bool allowed = true;
  try {
    if (came) maker->add(*came, hint);
    if (!here.empty()) reason = difference(came, expected, position_, binding);
    allowed = may_compile(reason);
  } catch (...) {
    std::swap(binding_, binding);  // the user's error: the call is as if it had not been made
    throw;
  }
  if (!here.empty() && allowed) note_recompile(reason, here.size());
  spare_ = point_->temporary || here.size() >= limit() || !allowed;
  fresh->next.temporary = spare_;
  if (model && !spare_) {
    bool same_place = std::find(here.begin(), here.end(), model) != here.end();
    fresh->model = same_place ? model : nullptr;
    fresh->forked_at = position_;
    fresh->next.model = &model->next;
  }
  trace_ = fresh.get();
  made_ = std::move(fresh);
  maker_ = std::move(maker);
}

size_t Path::limit() const { return static_cast<size_t>(state_->options.recompile_limit); }

void Path::note_recompile(const std::string& reason, size_t known) {
  std::lock_guard lock(state_->mutex);
  if (point_->warned || point_->temporary) return;
  state_->recompiles.push_back(reason);
  if (logs("recompiles")) log_line("recompiles", reason);
  if (known < limit()) return;
  point_->warned = true;
  log_line("recompiles", str("the recompile limit of ", limit(),
                             " graphs for one place is reached; what fits none of them runs uncompiled. The last "
                             "difference: ",
                             reason));
}

// The next call begins with this trace. Calls of several threads read that without a lock, and share the line while it does not change.
void Path::follow_latest() {
  std::atomic_ref latest(point_->latest);
  if (latest.load(std::memory_order_relaxed) != trace_) latest.store(trace_, std::memory_order_release);
}

// A finished trace becomes visible to other calls.
bool Path::end() {
  if (position_ == 0 && !maker_) return false;
  if (!maker_ && position_ < trace_->events.size() && !switch_to(nullptr)) fork(nullptr);
  if (!maker_) {
    follow_latest();
    return true;
  }
  trace_->sample = binding_;
  trace_->finish();
  if (!maker_->model() || maker_->model()->events.size() != position_) trace_->next.model = nullptr;
  if (!spare_) {
    std::lock_guard lock(state_->mutex);
    // Another thread may have been first, with the same trace or to reach the limit.
    for (const auto& t : point_->traces) {
      Binding binding = unbound(*t);
      if (!fits(*t, nullptr, binding)) continue;
      trace_ = t.get();
      binding_ = std::move(binding);
      spares_.push_back(std::move(made_));
      break;
    }
    spare_ = made_ && point_->traces.size() >= limit();
    if (made_ && !spare_) point_->traces.push_back(std::move(made_));
    maker_.reset();
    if (!spare_) follow_latest();
  }
  return true;
}

}  // namespace brasa::capture
