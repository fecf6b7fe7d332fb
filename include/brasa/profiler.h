#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <brasa/device.h>
#include <brasa/export.h>

/// What runs when, how often and for how long: operators, kernels, compilations, and ranges that the program names.
///
///     profiler::profile p;
///     for (auto& batch : batches) { profiler::record_function range("step"); train(batch); }
///     p.stop();
///     std::cout << p.key_averages().table();
///     p.export_chrome_trace("trace.json");  // for Perfetto or chrome://tracing
///
/// The names are those of torch.profiler.
namespace brasa::profiler {

enum class Kind : uint8_t {
  Operator,     ///< an eager operator, from its call to its return; one that a compiled function records is none
  Kernel,       ///< a generated kernel or a call of a library, by the clock of its device
  Compilation,  ///< the code generator's work on kernels that were in no cache
  Range,        ///< a record_function
};
/// "operator", "kernel", "compilation", "range".
BRASA_API const char* name(Kind kind);

struct Event {
  Kind kind;
  std::string name;
  Device device;           ///< whose time it is: the host's but for kernels
  uint32_t thread;         ///< that ran or launched it, counted from 1 in the order of their first events
  double start, duration;  ///< in microseconds, `start` since the profile's
  int64_t bytes;           ///< that a kernel read and wrote; 0 for what is none
  double flops;    ///< of a kernel: two for each multiplication and addition of a product, one for each element of a
                   ///< sum and of a floating point-wise operator; of a library's call products alone
  int64_t memory;  ///< by how many bytes the host's tensors grew meanwhile, those of all threads; 0 for kernels
  std::string shapes;  ///< of an operator's operands, "float32[8, 64], float32[64]", where ProfileOptions asks for them
  std::string
      source;  ///< where an operator or a range was called, "train.cpp:31 in step(...)", where ProfileOptions asks for it
};

/// All events of one kind and name.
struct Average {
  Kind kind;
  std::string name;
  int64_t calls = 0;
  double total = 0;  ///< microseconds
  double self = 0;   ///< less what ran inside of them, on the same thread
  int64_t bytes = 0;
  double flops = 0;
  int64_t memory = 0;
  std::string shapes, source;  ///< where Grouping asks for them
};

/// What makes two events of one kind and name different rows.
struct Grouping {
  bool shapes = false, source = false;
};

/// What a device can do at best.
struct Roofline {
  double bytes_per_second = 0, flops_per_second = 0;
};
/// Measured in about half a second with products and copies of this library: float32, as many threads as `set_num_threads` says. A
/// device's number without others' work beside it. brasa::Error for a device that is not there.
BRASA_API Roofline measure_roofline(Device device);

class BRASA_API Averages {
 public:
  explicit Averages(std::vector<Average> rows) : rows_(std::move(rows)) {}
  const std::vector<Average>& rows() const { return rows_; }
  /// From now on the table has a column "roof %": the time that a kernel's bytes or its FLOP, whichever takes longer, need at best, of the
  /// time that it took.
  void set_roofline(const Roofline& roofline) { roofline_ = roofline; }
  /// A line each, the largest first. `sort_by` is one of self_time, total_time, calls, bytes, flops, memory; brasa::Error for another.
  /// `row_limit` lines at most; a negative one is no limit.
  std::string table(const std::string& sort_by = "self_time", int64_t row_limit = 100) const;

 private:
  std::vector<Average> rows_;
  std::optional<Roofline> roofline_;
};

/// Which steps are recorded: after `skip_first` steps, in turn `wait` steps that are not, `warmup` steps whose events go, and `active`
/// ones; `repeat` times, or without end if it is 0.
struct Schedule {
  int64_t wait = 0, warmup = 0, active = 1, repeat = 0, skip_first = 0;
};

class profile;
struct ProfileOptions {
  std::optional<Schedule> schedule;  ///< without one everything is recorded
  /// Called when the active steps of a turn are over, with their events.
  std::function<void(profile&)> on_trace_ready;
  bool record_shapes = false;  ///< the shapes of operators' operands; a microsecond an operator
  bool with_stack =
      false;  ///< the user's line that called an operator or began a range; some microseconds each, and `stop` takes longer
};

/// Records from where it is made until `stop` or its end, on all threads. brasa::Error if another one records, or a schedule has a
/// negative number or no active step.
class BRASA_API profile {
 public:
  explicit profile(ProfileOptions options = {});
  ~profile();
  profile(const profile&) = delete;
  profile& operator=(const profile&) = delete;

  /// The next step of the schedule begins.
  void step();
  /// Nothing more is recorded. It waits for the devices' work.
  void stop();

  /// Of the last turn, by their start; empty while it is recorded.
  const std::vector<Event>& events() const;
  Averages key_averages(Grouping by = {}) const;
  /// The events as JSON that chrome://tracing and Perfetto show. brasa::Error if the file cannot be written.
  void export_chrome_trace(const std::string& path) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Names what runs while it lives, on this thread. It costs a nanosecond while nobody records.
class BRASA_API record_function {
 public:
  explicit record_function(std::string_view name);
  ~record_function();
  record_function(const record_function&) = delete;
  record_function& operator=(const record_function&) = delete;

 private:
  struct Range;
  std::unique_ptr<Range> range_;
};

}  // namespace brasa::profiler
