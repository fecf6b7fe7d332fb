#include <brasa/compile.h>

#include <algorithm>

#include "capture/describe.h"
#include "capture/session.h"
#include "compiler/compile.h"
#include "ir/text.h"
#include "support/epoch.h"
#include "support/error.h"
#include "support/source_line.h"
#include "tensor/autocast.h"

namespace brasa {

std::vector<std::string> list_backends() { return capture::backend_names(); }

namespace detail {

std::shared_ptr<CompiledState> make_compiled_state(CompileOptions options) {
  auto state = std::make_shared<CompiledState>();
  state->backend = capture::find_backend(options.backend);
  capture::check_options(options);
  BRASA_CHECK(options.recompile_limit > 0, "compile: recompile_limit is ", options.recompile_limit,
              "; it must be at least 1 (disable runs a function uncompiled)");
  state->options = std::move(options);
  return state;
}

// A compiled function called while another records becomes part of that recording.
struct Recording::Impl {
  capture::Session session;
  Recorder::Scope scope;
  eager::CastCache casts;
  explicit Impl(const std::shared_ptr<CompiledState>& s) : session(*s), scope(&session) {}
};

Recording::Recording(const std::shared_ptr<CompiledState>& state) {
  if (state->options.disable || Recorder::current()) return;
  impl_ = std::make_unique<Impl>(state);
}
Recording::~Recording() = default;

void Recording::finish() {
  if (!impl_) return;
  impl_->casts.clear();  // what is still referenced would be delivered
  impl_->session.finish();
}

namespace {

void explain_place(const capture::ResumePoint& point, Explanation& out) {
  for (const auto& trace : point.traces) {
    for (const program::Variant* found : program::VariantCache::get().of(trace->owner)) {
      const program::Variant& v = *found;
      Explanation::Graph g;
      g.operators = ir::print(*v.program.graph);
      for (const ir::Node* n : live_nodes(*v.program.graph)) g.operator_count += n->op != ir::input_op();
      if (const compiler::Report* report = compiler::report_of(*v.executable)) {
        g.kernels_before = report->kernels_before;
        g.kernels_after = report->kernels_after;
        g.bytes_before = report->bytes_before;
        g.bytes_after = report->bytes_after;
        for (const std::string& line : report->kernels) g.kernels += line + "\n";
      }
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

Explanation explain(CompiledState& state) {
  std::lock_guard lock(state.mutex);
  Epoch::Reading reading;
  Explanation out;
  explain_place(state.start, out);
  explain_place(state.far, out);
  for (const capture::Break& b : state.breaks)
    out.breaks.push_back({b.reason, b.after ? b.after->name() : "", users_line(b.stack), b.count});
  out.recompiles = state.recompiles;
  return out;
}

}  // namespace detail

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
    for (const std::string& guard : g.symbolic ? g.guards : std::vector<std::string>())
      out += "  guard: " + guard + "\n";
    for (const std::string& fact : g.facts) out += "  where " + fact + "\n";
  }
  for (const Break& b : breaks)
    out += brasa::str("graph break: ", b.reason, " needs a value", b.after.empty() ? "" : ", after " + b.after,
                      b.where.empty() ? "" : ", at " + b.where, "; ", counted(b.count, "time"), "\n");
  for (const std::string& what : recompiles) out += "recompiled: " + what + "\n";
  return out;
}

}  // namespace brasa
