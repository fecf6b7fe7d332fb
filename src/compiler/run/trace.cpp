#include "compiler/run/trace.h"

#include <brasa/trace.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace brasa {
namespace compiler {
namespace {

std::atomic<bool> g_tracing = false;
std::mutex g_mutex;
std::map<std::string, KernelTime>& times() {
  static auto* all = new std::map<std::string, KernelTime>;
  return *all;
}

}  // namespace

bool tracing() { return g_tracing.load(std::memory_order_relaxed); }

TracedRun::TracedRun(runtime::Device& device, runtime::Stream stream)
    : device_(device), stream_(stream), start_(device.mark_time(stream)) {}

void TracedRun::step(const std::string& what, int64_t bytes, double flops) {
  steps_.push_back({what, bytes, flops, device_.mark_time(stream_)});
}

TracedRun::~TracedRun() {
  const runtime::TimeMark* before = start_.get();
  std::lock_guard lock(g_mutex);
  for (const Step& s : steps_) {
    KernelTime& t = times()[s.what];
    t.what = s.what;
    ++t.calls;
    t.milliseconds += s.end->since(*before);
    t.bytes += s.bytes;
    t.flops += s.flops;
    before = s.end.get();
  }
}

}  // namespace compiler

void start_trace() {
  std::lock_guard lock(compiler::g_mutex);
  compiler::times().clear();
  compiler::g_tracing = true;
}

std::vector<KernelTime> stop_trace() {
  std::lock_guard lock(compiler::g_mutex);
  compiler::g_tracing = false;
  std::vector<KernelTime> out;
  for (auto& [what, time] : std::exchange(compiler::times(), {})) out.push_back(std::move(time));
  std::sort(out.begin(), out.end(),
            [](const KernelTime& a, const KernelTime& b) { return a.milliseconds > b.milliseconds; });
  return out;
}

}  // namespace brasa
