#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device.h"

// What runs when, written down while somebody asks for it: the profiler's source.
namespace brasa::runtime {

enum class SpanKind : uint8_t { Operator, Kernel, Compilation, Range };

/// Something that ran from `begin` to `end`, in nanoseconds of std::chrono::steady_clock.
struct Span {
  SpanKind kind;
  std::string name;
  brasa::Device device;  ///< whose time it is: the host's but for kernels
  uint32_t thread;       ///< that ran or launched it, counted from 1
  int64_t begin, end;
  int64_t bytes = 0;           ///< of kernels: read and written
  double flops = 0;            ///< of kernels
  int64_t memory = 0;          ///< of others: the bytes of the host's tensors that it added, of all threads
  std::string shapes;          ///< of operators: of their operands
  std::vector<void*> stack{};  ///< of operators and ranges: where they were called, from inside outwards
};

/// What is written down beside times; each costs some microseconds an operator.
struct SpanDetail {
  bool shapes = false, stack = false;
};

/// Whether spans are written down.
inline std::atomic<bool> g_recording_spans{false};
inline bool recording_spans() { return g_recording_spans.load(std::memory_order_relaxed); }

/// From now on, of all threads. brasa::Error if they are written down already.
void start_spans(SpanDetail detail = {});
/// Whether the shapes of an operator's operands are wanted.
bool recording_shapes();
/// What ended since, by begin; waits for the devices that ran some of it.
std::vector<Span> stop_spans();

/// From where it is made to where it ends, on this thread.
class HostSpan {
 public:
  HostSpan(SpanKind kind, std::string_view name) {
    if (recording_spans()) [[unlikely]]
      begin(kind, name);
  }
  ~HostSpan() {
    if (span_) [[unlikely]]
      end();
  }
  HostSpan(const HostSpan&) = delete;
  HostSpan& operator=(const HostSpan&) = delete;
  void set_shapes(std::string shapes);

 private:
  void begin(SpanKind kind, std::string_view name);
  void end();
  std::unique_ptr<Span> span_;
};

/// Kernels that are launched one after the other into a stream: each lasts from the end of what ran before.
class KernelSpans {
 public:
  KernelSpans(Device& device, Stream stream);
  ~KernelSpans();
  KernelSpans(const KernelSpans&) = delete;
  KernelSpans& operator=(const KernelSpans&) = delete;
  /// What was launched since the last one.
  void launched(const std::string& what, int64_t bytes, double flops);

  struct Launched {
    std::string what;
    int64_t bytes;
    double flops;
    std::unique_ptr<TimeMark> end;
  };

 private:
  Device& device_;
  Stream stream_;
  std::unique_ptr<TimeMark> start_;
  std::vector<Launched> launched_;
};

}  // namespace brasa::runtime
