#include <atomic>
#include <cstdlib>

#include <execinfo.h>

#include <brasa/warning.h>

#include "support/error.h"
#include "support/scoped.h"
#include "tensor/autograd/meta.h"

namespace brasa::autograd {
namespace {

std::atomic<bool> enabled{false}, check_nan{true};
// Of the node whose backward this thread runs.
thread_local std::shared_ptr<Anomaly> running;

std::string here() {
  constexpr int kFrames = 64, kOwn = 3;
  void* frames[kFrames];
  int n = ::backtrace(frames, kFrames);
  char** names = ::backtrace_symbols(frames, n);
  std::string out;
  for (int i = kOwn; names && i < n; ++i) out += str("  frame #", i - kOwn, ": ", names[i], "\n");
  std::free(names);
  return out;
}

void warn(const std::string& text) { Warning::warn({"backward", __FILE__, __LINE__}, text, false); }

void report(const Anomaly& anomaly, const std::string& name) {
  warn(str("Error detected in ", name, ". Traceback of forward call that caused the error:\n", anomaly.trace));
  for (const Anomaly* a = anomaly.parent.get(); a; a = a->parent.get())
    warn(str("Previous calculation was induced by ", a->name,
             ". Traceback of forward call that induced the previous calculation:\n", a->trace));
}

void check(const Node& node, const variable_list& out) {
  NoGradGuard no_grad;
  for (size_t i = 0; i < out.size(); ++i) {
    if (!out[i].defined() || !(out[i].is_floating_point() || out[i].is_complex())) continue;
    BRASA_CHECK(!out[i].ne(out[i]).any().item<bool>(), "Function '", node.name(), "' returned nan values in its ", i,
                "th output.");
  }
}

}  // namespace

bool AnomalyMode::is_enabled() { return enabled.load(std::memory_order_relaxed); }
bool AnomalyMode::should_check_nan() { return check_nan.load(std::memory_order_relaxed); }
void AnomalyMode::set_enabled(bool on, bool nan) {
  enabled = on;
  check_nan = nan;
}

DetectAnomalyGuard::DetectAnomalyGuard(bool nan)
    : previous_(AnomalyMode::is_enabled()), previous_check_nan_(AnomalyMode::should_check_nan()) {
  AnomalyMode::set_enabled(true, nan);
}
DetectAnomalyGuard::~DetectAnomalyGuard() { AnomalyMode::set_enabled(previous_, previous_check_nan_); }

std::shared_ptr<Anomaly> new_anomaly() { return std::make_shared<Anomaly>(Anomaly{here(), {}, running}); }

variable_list apply_watched(Node& node, variable_list&& gradients) {
  std::shared_ptr<Anomaly> anomaly = node.internals().anomaly;
  anomaly->name = node.name();
  Scoped now(running, anomaly);
  try {
    variable_list out = NodeAccess::apply(node, std::move(gradients));
    if (AnomalyMode::should_check_nan()) check(node, out);
    return out;
  } catch (...) {
    report(*anomaly, anomaly->name);
    throw;
  }
}

}  // namespace brasa::autograd
