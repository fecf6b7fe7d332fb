#include <brasa/compile.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "capture/describe.h"
#include "capture/minify_runs.h"
#include "capture/session.h"
#include "capture/stance.h"
#include "compiler/run/compiled.h"
#include "runtime/float32_products.h"
#include "support/epoch.h"
#include "support/error.h"
#include "support/mutex.h"
#include "support/pooled.h"
#include "support/settings.h"
#include "support/source_line.h"
#include "tensor/autocast.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa {

std::vector<std::string> list_backends() { return capture::backend_names(); }

namespace detail {

// A compiled function: its states until the next reset, one for each precision that it is called with.
struct CompiledFunction {
  CompileOptions options;
  capture::Backend backend;

  std::shared_ptr<CompiledState> present();
  /// Whether a call runs as it is, and nothing of it is to be known.
  bool passes();

 private:
  Mutex mutex_;                                   // of what changes
  std::shared_ptr<CompiledState> states_[2];      // by whether products of float32 may be rounded
  std::atomic<CompiledState*> readable_[2] = {};  // the same, for calls, which take no lock

  // The present state for calls, while somebody reads; null: there is none.
  CompiledState* readable(bool rounds) const;
  std::shared_ptr<CompiledState> renew(bool rounds);
};

namespace {
std::atomic<uint64_t> resets = 0;
thread_local int recordings = 0, unrecorded = 0, plain = 0;
}  // namespace

CompiledState* CompiledFunction::readable(bool rounds) const {
  CompiledState* state = readable_[rounds].load(std::memory_order_acquire);
  return state && state->resets == brasa::detail::resets.load(std::memory_order_relaxed) ? state : nullptr;
}

std::shared_ptr<CompiledState> CompiledFunction::present() {
  bool rounds = runtime::float32_products_in_tf32();
  {
    Epoch::Reading reading;
    if (CompiledState* state = readable(rounds)) return state->shared_from_this();
  }
  return renew(rounds);
}

bool CompiledFunction::passes() {
  Epoch::Reading reading;
  CompiledState* state = readable(runtime::float32_products_in_tf32());
  return state && state->pace->passes();
}

std::shared_ptr<CompiledState> CompiledFunction::renew(bool rounds) {
  std::lock_guard lock(mutex_);
  uint64_t now = brasa::detail::resets.load(std::memory_order_relaxed);
  for (int i : {0, 1}) {
    if (!states_[i] || states_[i]->resets == now) continue;
    readable_[i].store(nullptr, std::memory_order_release);
    Epoch::retire([old = std::move(states_[i])]() mutable { old.reset(); });
  }
  std::shared_ptr<CompiledState>& state = states_[rounds];
  if (state) return state;
  state = std::make_shared<CompiledState>();
  state->options = options;
  state->backend = backend;
  state->resets = now;
  state->pace.emplace(options);
  readable_[rounds].store(state.get(), std::memory_order_release);
  return state;
}

std::shared_ptr<CompiledFunction> make_compiled(CompileOptions options) {
  auto f = std::make_shared<CompiledFunction>();
  f->backend = options.backend.function ? capture::adapted(options.backend, *options.backend.function)
                                        : capture::find_backend(options.backend);
  if (const char* folder = environment("BRASA_MINIFY"); folder && *folder)
    f->backend = capture::minifying(std::move(f->backend), options.backend, folder);
  capture::check_options(options);
  BRASA_CHECK(options.recompile_limit > 0, "compile: recompile_limit is ", options.recompile_limit,
              "; it must be at least 1 (disable runs a function uncompiled)");
  f->options = std::move(options);
  return f;
}

// A compiled function called while another records becomes part of that recording. Pooled, and what few calls need is apart, since a block
// of a kilobyte or more makes malloc join all small ones that are free.
struct Recording::Impl : Pooled {
  struct Recorded : Pooled {
    capture::Session session;
    Recorder::Scope scope{&session};
    eager::CastCache casts;
    Recorded(CompiledState& state, capture::Watch* watch, capture::Work* work) : session(state, watch, work) {
      ++recordings;
    }
    ~Recorded() { --recordings; }
  };
  std::shared_ptr<CompiledState> state;
  std::unique_ptr<capture::Learning> learning;  // of a pure function
  std::optional<capture::Pace::Call> call;      // of another one
  std::unique_ptr<Recorded> recorded;           // null where the call runs as it is
};

namespace {
bool runs_as_it_is(const CompiledFunction& f) {
  // A call that is plain because that is faster is so in all that it calls.
  return f.options.disable || Recorder::current() || unrecorded || plain ||
         capture::stance() == capture::Stance::ForceEager;
}
}  // namespace

Recording::Recording(CompiledFunction& f, const Arguments* arguments) {
  if (runs_as_it_is(f)) return;
  bool paced = !arguments && capture::stance() == capture::Stance::Default;
  plain_ = paced && f.passes();
  if (!plain_) {
    impl_.reset(new Impl);  // make_unique would write zeros over all of it first
    Impl& i = *impl_;
    i.state = f.present();
    if (paced)
      i.call.emplace(*i.state->pace);
    else if (auto now = arguments ? capture::Surroundings::now() : std::nullopt)
      i.learning = std::make_unique<capture::Learning>(i.state->shortcuts, *now, *arguments,
                                                       static_cast<size_t>(f.options.recompile_limit));
    plain_ = i.call && !i.call->compiled();
    if (!plain_)
      i.recorded = std::make_unique<Impl::Recorded>(*i.state, i.learning ? &i.learning->watch() : nullptr,
                                                    i.call ? &i.call->work() : nullptr);
  }
  plain += plain_;
}
Recording::~Recording() {
  impl_.reset();
  plain -= plain_;
}

void Recording::finish() {
  if (!impl_) return;
  if (auto& recorded = impl_->recorded) {
    recorded->casts.clear();  // what is still referenced would be delivered
    recorded->session.finish();
  }
  if (!impl_->call) return;
  impl_->recorded.reset();  // it is part of the time
  impl_->call->end();
}

void Recording::learn(const std::vector<Tensor>& results) {
  if (impl_ && impl_->learning) impl_->learning->end(results);
}

void cannot_skip(CompiledFunction& f) {
  f.present()->shortcuts.refuse("an argument is neither tensor nor number, or the result is no tensor");
}
bool is_pure(const CompiledFunction& f) { return f.options.pure; }
bool skip(CompiledFunction& f, const Arguments& arguments, std::vector<Tensor>& results) {
  return !runs_as_it_is(f) && f.present()->shortcuts.run(arguments, results);
}

struct Unrecorded::Impl {
  Recorder::Scope scope{nullptr};
};

Unrecorded::Unrecorded(bool opaque) {
  Recorder* recorder = Recorder::current();
  if (opaque) {
    auto* session = dynamic_cast<capture::Session*>(recorder);
    if (!session) return;
    session->before_opaque_call();
  } else if (recorder) {
    recorder->materialise("a function that is not to be compiled");
  }
  impl_ = std::make_unique<Impl>();
  ++unrecorded;
}
Unrecorded::~Unrecorded() { unrecorded -= impl_ != nullptr; }

namespace {

int64_t number_in(const ir::Facts& example, const ir::Expr& e) {
  return e.is_constant() ? e.constant() : example.has_hint(e) ? example.hint(e) : 0;
}

void add_memory(const compiler::Report& report, const ir::Facts& example, Explanation::Graph& g) {
  auto number = [&](const ir::Expr& e) { return number_in(example, e); };
  g.arena_bytes = number(report.arena_bytes);
  g.prepared_bytes = number(report.prepared_bytes);
  for (const compiler::PlannedBuffer& b : report.memory)
    g.memory.push_back({brasa::str(b.type), b.prepared, number(b.offset),
                        number(b.type.numel()) * size_of(b.type.dtype), b.first, b.last});
}

void explain_place(const capture::ResumePoint& point, Explanation& out) {
  for (const auto& trace : point.traces) {
    for (const program::Variant* found : program::VariantCache::get().of(trace->owner)) {
      const program::Variant& v = *found;
      Explanation::Graph g;
      const ir::Facts example(trace->sample.symbols);
      g.operators = transforms::text_of(*v.program.graph, example);
      for (const ir::Node* n : live_nodes(*v.program.graph)) g.operator_count += n->op != ir::input_op();
      if (const compiler::Report* report = compiler::report_of(*v.executable)) {
        g.kernels_before = report->kernels_before;
        g.kernels_after = report->kernels_after;
        g.bytes_before = report->bytes_before;
        g.bytes_after = report->bytes_after;
        for (const std::string& line : report->kernels) g.kernels += line + "\n";
        add_memory(*report, example, g);
        if (auto* compiled = dynamic_cast<const compiler::CompiledGraph*>(v.executable.get()))
          if (size_t n = compiled->baseline_kernels())
            g.kernels += brasa::str(n, n == 1 ? " kernel has" : " kernels have", " baseline code\n");
      }
      if (auto* halves = dynamic_cast<const capture::Halves*>(v.attachment.get()))
        for (const ir::Type& t : halves->intermediates)
          g.kept_bytes += number_in(example, t.numel()) * size_of(t.dtype);
      g.guards = capture::guards_of(*trace);
      for (const ir::Fact& f : v.program.conditions.facts())
        if (std::string text = brasa::str(f); std::find(g.guards.begin(), g.guards.end(), text) == g.guards.end())
          g.facts.push_back(std::move(text));
      g.symbolic = !trace->arguments.empty() || !trace->sample.symbols.empty();
      out.graphs.push_back(std::move(g));
    }
    explain_place(trace->next, out);
  }
}

}  // namespace

Explanation explain(CompiledFunction& function) {
  std::shared_ptr<CompiledState> held = function.present();
  CompiledState& state = *held;
  std::lock_guard lock(state.mutex);
  Epoch::Reading reading;
  Explanation out;
  explain_place(state.start, out);
  explain_place(state.far, out);
  for (capture::Break& b : state.breaks)
    (b.reason.empty() ? out.opaque_calls : out.breaks)
        .push_back({b.reason, b.after ? b.after->name() : "", users_line(b.stack),
                    std::atomic_ref(b.count).load(std::memory_order_relaxed),
                    b.decides
                        ? "where(condition, a, b) chooses in the graph, cond(condition, f, g) runs one of two functions"
                        : ""});
  out.recompiles = state.recompiles;
  out.skipped = state.shortcuts.skipped();
  out.not_skipped = state.shortcuts.reason();
  out.slower = state.pace->reason();
  return out;
}

}  // namespace detail

// A body must not do something else where it is faster as it is.
bool is_compiling() {
  return (detail::recordings > 0 && Recorder::current()) || (detail::plain > 0 && !detail::unrecorded);
}
void reset() { detail::resets.fetch_add(1); }

void mark_dynamic(const Tensor& t, int64_t dim, std::optional<int64_t> min, std::optional<int64_t> max) {
  TensorImpl& impl = *checked_impl(t);
  int64_t rank = impl.rank(), at = dim < 0 ? dim + rank : dim;
  BRASA_CHECK(at >= 0 && at < std::min<int64_t>(rank, 64), "mark_dynamic: dimension ", dim, " of ", t);
  int64_t size = impl.sizes[at];
  BRASA_CHECK(size >= min.value_or(0) && size <= max.value_or(INT64_MAX), "mark_dynamic: size ", size, " of dimension ",
              dim, " is not in [", min.value_or(0), ", ", max ? str(*max) : "…", "]");
  if (eager::view_of(impl))
    impl_of(eager::base_of(t))->dynamic_dims = ~uint64_t{0};
  else
    impl.dynamic_dims |= uint64_t{1} << at;
}
void mark_dynamic(const Tensor& t, const std::vector<int64_t>& dims) {
  for (int64_t dim : dims) mark_dynamic(t, dim);
}

std::string Explanation::Graph::memory_plan() const {
  int64_t separate = 0;
  for (const Buffer& b : memory) separate += b.bytes;
  std::string out = brasa::str("memory, kernels counted from 0: an arena of ", arena_bytes, " bytes",
                               prepared_bytes ? brasa::str(" and ", prepared_bytes, " that are made once") : "",
                               " for ", memory.size(), " values of ", separate, " bytes\n");
  for (const Buffer& b : memory)
    out += brasa::str("  ", b.prepared ? "made once" : "arena", " + ", b.offset, ": ", b.type, ", ", b.bytes,
                      " bytes, kernels ", b.first, " to ", b.last, "\n");
  return out;
}

std::string Explanation::str(bool kernels) const {
  int64_t broken = 0;
  for (const Break& b : breaks) broken += b.count;
  auto counted = [](auto n, const char* what) { return brasa::str(n, " ", what, n == 1 ? "" : "s"); };
  std::string out = brasa::str(counted(graphs.size(), "graph"), ", ", counted(broken, "graph break"), " at ",
                               counted(breaks.size(), "place"), ", ", counted(recompiles.size(), "recompile"), "\n");
  auto megabytes = [](int64_t bytes) {
    return brasa::str((bytes + 50000) / 1000000, ".", (bytes + 50000) / 100000 % 10, " MB");
  };
  for (size_t i = 0; i < graphs.size(); ++i) {
    const Graph& g = graphs[i];
    out += brasa::str("\ngraph ", i, ": ", counted(g.operator_count, "operator"), "; kernels ", g.kernels_before,
                      " -> ", g.kernels_after, "; memory traffic ", megabytes(g.bytes_before), " -> ",
                      megabytes(g.bytes_after), "\n", kernels ? g.kernels : "");
    if (g.kept_bytes) out += brasa::str("  ", megabytes(g.kept_bytes), " wait for the backward pass\n");
    if (kernels && !g.memory.empty()) out += g.memory_plan();
    for (const std::string& guard : g.symbolic ? g.guards : std::vector<std::string>())
      out += "  guard: " + guard + "\n";
    for (const std::string& fact : g.facts) out += "  where " + fact + "\n";
  }
  auto add_place = [&](const std::string& what, const Break& b) {
    out += brasa::str(what, b.after.empty() ? "" : ", after " + b.after, b.where.empty() ? "" : ", at " + b.where, "; ",
                      counted(b.count, "time"), b.advice.empty() ? "" : "; " + b.advice, "\n");
  };
  for (const Break& b : breaks) add_place("graph break: " + b.reason + " needs a value", b);
  for (const Break& b : opaque_calls) add_place("opaque call", b);
  for (const std::string& what : recompiles) out += "recompiled: " + what + "\n";
  if (skipped) out += "the body was skipped in " + counted(skipped, "call") + "\n";
  if (!slower.empty()) out += "calls run as they are: " + slower + "\n";
  if (!not_skipped.empty()) out += "the body is not skipped: " + not_skipped + "\n";
  return out;
}

}  // namespace brasa
