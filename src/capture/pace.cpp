#include "capture/pace.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>
#include <utility>

#include "capture/backend.h"
#include "capture/kept_values.h"
#include "support/hash.h"
#include "support/str.h"
#include "tensor/autograd/meta.h"

namespace brasa::capture {
namespace {

constexpr int kAlike[] = {20, 64};  // calls that did the same, or began so, before they are measured
// After so many pairs, compiled calls that are faster by this factor are fast enough; at last, those that are not slower by more than this.
// The first plain calls may run code that is new. Of calls that only begin alike it takes more to tell them from chance.
struct Stage {
  size_t pairs;
  double ratio;
};
constexpr Stage kStages[][3] = {{{3, 0.8}, {8, 0.95}, {24, 1.02}}, {{16, 0.7}, {32, 0.9}, {64, 1.03}}};
// Measured calls are the same kind so often: what a call finds in caches and in the heap is what the one before left there.
constexpr int kInARow = 4;
constexpr int kLookAgain = 64, kLookSeldom = 512;  // bounds of `look_again_`, which doubles
constexpr int kTimed = 8;                          // one of so many plain calls is timed
constexpr double kFar = 4;                         // a plain call that takes so many times longer does something else
constexpr size_t kVerdicts = 8;
constexpr size_t kTrials = 32;  // measured calls that wait for their backward pass
constexpr double kNever = std::numeric_limits<double>::infinity();
// What would take long or much memory as it is, is not tried: its operators may never have been compiled for themselves.
constexpr size_t kMostOperators = 64;  // different ones
constexpr int64_t kMostBytes = int64_t{1} << 30;

// Other backends are there to be looked into or compared with.
bool asked_for(const CompileOptions& options) {
  auto given = options.options.find("fall_back");
  if (given != options.options.end()) return given->second == "true";
  return options.backend == "inductor" && !options.backend.function && !traces_nan(options) &&
         numbers_of(options) != compiler::Numbers::Strict && memory_budget_of(options).value_or(1) >= 1;
}

std::string microseconds(double seconds) {
  char out[40];
  std::snprintf(out, sizeof out, "%.1f µs", seconds * 1e6);
  return out;
}

}  // namespace

void Work::ran(const void* graph, std::span<const int64_t> sizes) {
  graphs = mix(graphs, reinterpret_cast<uintptr_t>(graph));
  for (int64_t size : sizes) graphs = mix(graphs, static_cast<uint64_t>(size));
  if (first == 0) first = graphs;
}

uint64_t Work::done(Alike alike) const {
  if (!comparable) return 0;
  if (beyond_limit) return kBeyondLimit;
  return alike == Alike::Whole ? graphs : first == 0 ? 0 : mix(first, kBegun);
}

Pace::Pace(const CompileOptions& options) : phase_(asked_for(options) ? Phase::Watching : Phase::Off) {}

std::string Pace::reason() const {
  std::lock_guard lock(mutex_);
  return reason_;
}

// What was found out of calls that do what these do; null: nothing.
const Pace::Verdict* Pace::verdict() const {
  auto v = std::find_if(known_.begin(), known_.end(), [&](const Verdict& k) { return k.graphs == graphs_; });
  return v == known_.end() ? nullptr : &*v;
}

// Whether this call is one of the owner's, which move the phases on.
bool Pace::is_watched() {
  if (phase_.load(std::memory_order_relaxed) == Phase::Off) return false;
  std::thread::id here = std::this_thread::get_id(), owner = owner_.load(std::memory_order_relaxed);
  if (owner == std::thread::id() && owner_.compare_exchange_strong(owner, here, std::memory_order_relaxed))
    owner = here;
  if (owner == here) return !busy_;
  // Times of calls that overlap say nothing, and what the owner does says nothing of this one.
  move_to(Phase::Off);
  return false;
}

// Whether the next call is compiled.
bool Pace::choose(Work& work) {
  switch (phase_.load(std::memory_order_relaxed)) {
    case Phase::Off: return true;
    case Phase::Watching:
      for (Alike a : {Alike::Whole, Alike::Begin}) work.weigh |= streaks_[int(a)].calls + 1 == kAlike[int(a)];
      return true;
    case Phase::Measuring: return calls_++ / kInARow % 2 == 1;
    case Phase::Plain: return ++calls_ % look_again_ == 0;
  }
  return true;
}

void Pace::start_over() {
  for (Streak& s : streaks_) s = {};
  trials_.clear();
  move_to(Phase::Watching);
}

void Pace::move_to(Phase phase) {
  Phase now = phase_.load(std::memory_order_relaxed);
  while (now != Phase::Off && !phase_.compare_exchange_weak(now, phase)) {
  }
  std::lock_guard lock(mutex_);
  reason_.clear();
  if (phase != Phase::Plain || now == Phase::Off) return;
  const Verdict* v = verdict();
  reason_ = str("calls took ", microseconds(v->compiled), " compiled and ", microseconds(v->plain), " as they are");
}

void Pace::watch(const Work& work) {
  for (Alike a : {Alike::Whole, Alike::Begin}) {
    Streak& s = streaks_[int(a)];
    uint64_t done = work.done(a);
    if (done == 0 || done != s.done) {
      s = {done, 0};
      continue;
    }
    if (s.calls < kAlike[int(a)] && work.settled && ++s.calls == kAlike[int(a)]) {
      alike_ = a;
      graphs_ = done;
      return judge(work);
    }
    if (s.calls == kAlike[int(a)]) return;  // of these calls it is known
  }
}

// Calls do the same again and again.
void Pace::judge(const Work& work) {
  calls_ = 0;
  if (const Verdict* v = verdict()) {
    look_again_ = kLookAgain;
    if (v->slower) move_to(Phase::Plain);
    return;
  }
  if (work.operators.size() > kMostOperators || work.bytes > kMostBytes) return;
  if (known_.size() == kVerdicts) return move_to(Phase::Off);
  backward_ = work.backward;
  passes_ = missed_ = 0;
  call_ = alike_ == Alike::Whole ? kNever : 0;
  forget_times();
  move_to(Phase::Measuring);
}

void Pace::forget_times() {
  for (auto& s : seconds_) s.clear();
}

// What a call takes: the least, where all do the same, else the mean of all but the longest, which something interrupted.
double Pace::cost(bool compiled) const {
  std::vector<double> s = seconds_[compiled];
  if (alike_ == Alike::Whole) return *std::min_element(s.begin(), s.end());
  std::sort(s.begin(), s.end());
  s.resize(s.size() - s.size() / 8);
  return std::accumulate(s.begin(), s.end(), 0.0) / static_cast<double>(s.size());
}

void Pace::decide(bool slower) {
  look_again_ = kLookAgain;
  known_.push_back({graphs_, slower, cost(true), cost(false), call_});
  calls_ = 0;
  trials_.clear();
  move_to(slower ? Phase::Plain : Phase::Watching);
}

// `first_node`: the number of the first node that it may have made.
void Pace::try_call(bool compiled, double seconds, uint64_t first_node) {
  if (!compiled) call_ = alike_ == Alike::Whole ? std::min(call_, seconds) : std::max(call_, seconds);
  if (!backward_) return measured(compiled, seconds);
  trials_.push_back({compiled, seconds, autograd::Meter::make(first_node, autograd::next_sequence_nr())});
}

// Calls whose backward pass has come. Where none comes for many calls, or for most, it is the call alone that counts.
void Pace::end_trials() {
  auto measuring = [&] { return phase_.load(std::memory_order_relaxed) == Phase::Measuring; };
  bool passed = std::any_of(trials_.begin(), trials_.end(), [](const Trial& t) { return t.meter->passed(); });
  if (passed && passes_ == 0) forget_times();
  std::deque<Trial> open;
  for (Trial& t : std::exchange(trials_, {})) {
    if (!measuring()) return;
    if (!t.meter->passed()) {
      open.push_back(std::move(t));
      continue;
    }
    ++passes_;
    measured(t.compiled, t.seconds + t.meter->seconds());
  }
  for (; open.size() >= kTrials && measuring(); open.pop_front()) {
    if (passes_ == 0) {
      measured(open.front().compiled, open.front().seconds);
    } else if (++missed_ > passes_) {
      backward_ = false;
      return forget_times();
    }
  }
  if (measuring()) trials_ = std::move(open);
}

void Pace::measured(bool compiled, double seconds) {
  seconds_[compiled].push_back(seconds);
  size_t pairs = std::min(seconds_[false].size(), seconds_[true].size());
  const auto& stages = kStages[int(alike_)];
  for (auto stage : stages)
    if (pairs == stage.pairs && cost(true) <= stage.ratio * cost(false)) return decide(false);
  if (pairs == std::end(stages)[-1].pairs) decide(true);
}

bool Pace::passes() {
  if (phase_.load(std::memory_order_relaxed) != Phase::Plain) return false;
  // Others end the phase. Calls that are looked at and those that are timed are among the multiples.
  static_assert(kLookAgain % kTimed == 0);
  if (owner_.load(std::memory_order_relaxed) != std::this_thread::get_id() || busy_ || (calls_ + 1) % kTimed == 0)
    return false;
  ++calls_;
  return true;
}

Pace::Call::Call(Pace& pace) : pace_(pace), watched_(pace.is_watched()) {
  if (!watched_) {
    compiled_ = pace.phase_.load(std::memory_order_relaxed) != Phase::Plain;
    return;
  }
  pace_.busy_ = true;
  if (!pace_.trials_.empty()) pace_.end_trials();
  compiled_ = pace_.choose(work_);
  timed_ = pace_.phase_.load(std::memory_order_relaxed) != Phase::Plain || pace_.calls_ % kTimed == 0;
  if (!timed_) return;
  first_node_ = autograd::next_sequence_nr();
  begin_ = std::chrono::steady_clock::now();
}

Pace::Call::~Call() {
  if (!watched_) return;
  pace_.busy_ = false;
  if (!ended_ && pace_.phase_.load(std::memory_order_relaxed) == Phase::Measuring) pace_.start_over();
}

void Pace::Call::end() {
  ended_ = true;
  if (!watched_) return;
  Phase phase = pace_.phase_.load(std::memory_order_relaxed);
  if (phase == Phase::Watching) return pace_.watch(work_);
  if (phase == Phase::Off) return;
  bool same = !compiled_ || work_.done(pace_.alike_) == pace_.graphs_;
  if (!same) return pace_.start_over();
  if (phase == Phase::Plain && compiled_) pace_.look_again_ = std::min(pace_.look_again_ * 2, kLookSeldom);
  if (!timed_) return;
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  if (phase == Phase::Measuring)
    pace_.try_call(compiled_, seconds, first_node_);
  else if (!compiled_ && seconds > kFar * pace_.verdict()->call)
    pace_.calls_ = pace_.look_again_ - 1;
}

}  // namespace brasa::capture
