#include "runtime/spans.h"

#include <brasa/memory.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/source_line.h"

namespace brasa::runtime {
namespace {

struct Kernels {
  Device* device;
  uint32_t thread;
  std::unique_ptr<TimeMark> start;
  std::vector<KernelSpans::Launched> launched;
};

// A point of a device's clock, and of the host's at the same time.
struct Meeting {
  std::unique_ptr<TimeMark> mark;
  int64_t host;
};

struct Spans {
  Mutex mutex;
  std::vector<Span> host;
  std::vector<Kernels> kernels;  // the devices' times are asked for at the end: asking waits
  std::map<Device*, Meeting> meetings;
  std::atomic<bool> shapes = false, stack = false;

  static Spans& get() {
    static constinit Lazy<Spans> spans;
    return *spans;
  }
};

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

uint32_t thread_number() {
  static std::atomic<uint32_t> threads = 0;
  static thread_local uint32_t number = ++threads;
  return number;
}

// Earlier than all marks of the device, so that no time is below zero.
void meet(Spans& spans, Device& device) {
  std::lock_guard lock(spans.mutex);
  auto [at, added] = spans.meetings.try_emplace(&device);
  if (!added) return;
  device.synchronize();
  at->second.mark = device.mark_time(current_stream(device));
  device.synchronize();
  at->second.host = now();
}

}  // namespace

void start_spans(SpanDetail detail) {
  Spans& spans = Spans::get();
  std::lock_guard lock(spans.mutex);
  BRASA_CHECK(!recording_spans(), "a profile runs already: stop it before the next one starts");
  spans.host.clear();
  spans.kernels.clear();
  spans.meetings.clear();
  spans.shapes = detail.shapes;
  spans.stack = detail.stack;
  g_recording_spans = true;
}

bool recording_shapes() { return recording_spans() && Spans::get().shapes; }

std::vector<Span> stop_spans() {
  Spans& spans = Spans::get();
  std::lock_guard lock(spans.mutex);
  g_recording_spans = false;
  std::vector<Span> out = std::exchange(spans.host, {});
  for (Kernels& run : std::exchange(spans.kernels, {})) {
    const Meeting& meeting = spans.meetings.at(run.device);
    auto at = [&](const TimeMark& m) { return meeting.host + std::llround(1e6 * m.since(*meeting.mark)); };
    int64_t begin = at(*run.start);
    for (KernelSpans::Launched& k : run.launched) {
      int64_t end = at(*k.end);
      out.push_back(
          {SpanKind::Kernel, std::move(k.what), run.device->id(), run.thread, begin, end, k.bytes, k.flops, 0, {}, {}});
      begin = end;
    }
  }
  spans.meetings.clear();
  // What begins together: the longer one holds the other.
  std::sort(out.begin(), out.end(),
            [](const Span& a, const Span& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
  return out;
}

void HostSpan::begin(SpanKind kind, std::string_view name) {
  span_ = std::make_unique<Span>(Span{
      kind, std::string(name), brasa::Device(kCPU), thread_number(), 0, 0, 0, 0, -memory_stats().allocated, {}, {}});
  if (kind != SpanKind::Compilation && Spans::get().stack) span_->stack = call_stack();
  span_->begin = now();
}

void HostSpan::set_shapes(std::string shapes) {
  if (span_) span_->shapes = std::move(shapes);
}

void HostSpan::end() {
  span_->end = now();
  span_->memory += memory_stats().allocated;
  Spans& spans = Spans::get();
  std::lock_guard lock(spans.mutex);
  if (recording_spans()) spans.host.push_back(std::move(*span_));
}

KernelSpans::KernelSpans(Device& device, Stream stream) : device_(device), stream_(stream) {
  meet(Spans::get(), device);
  start_ = device.mark_time(stream);
}

void KernelSpans::launched(const std::string& what, int64_t bytes, double flops) {
  launched_.push_back({what, bytes, flops, device_.mark_time(stream_)});
}

KernelSpans::~KernelSpans() {
  Spans& spans = Spans::get();
  std::lock_guard lock(spans.mutex);
  // A profile that began meanwhile has met no device yet.
  if (recording_spans() && spans.meetings.count(&device_))
    spans.kernels.push_back({&device_, thread_number(), std::move(start_), std::move(launched_)});
}

}  // namespace brasa::runtime
