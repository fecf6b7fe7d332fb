#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <brasa/device.h>

#include "runtime/image.h"

// The table of devices: what the rest of Brasa knows of one.
namespace brasa {
struct Finding;
}

namespace brasa::runtime {

/// Work of one stream runs in order. 0 is the stream that every device has.
using Stream = uint32_t;
constexpr Stream kDefaultStream = 0;
/// A point in the work of a stream; 0: none.
using Event = uint64_t;

/// 8 bytes of a kernel's argument block: an address, a number's bits, or a size. All that varies between runs is in it, by value.
using Slot = uint64_t;
/// A kernel as its device knows it; alive as long as its module.
using Function = const void*;

/// Compiled kernels on a device.
class Module {
 public:
  virtual ~Module();
  /// brasa::Error if the image has no such kernel.
  virtual Function kernel(std::string_view name) const = 0;
};

/// What NVIDIA's driver takes as a kernel's parameters.
constexpr size_t kMostSlots = 4096 / sizeof(Slot);

/// How a matrix lies in memory, as a GPU's driver says it to a kernel that copies parts of it.
struct alignas(128) TensorMap {
  std::byte bytes[128];
};

struct Launch {
  Function kernel = nullptr;
  /// Addresses first, then numbers, then sizes: of each call.
  std::span<const Slot> slots;
  size_t addresses = 0;
  int64_t count = 0;         // iterations of the parallel loops, or blocks
  int64_t threads = 1;       // of a block
  int64_t grain = 1;         // iterations that a thread of the host takes at a time
  size_t scratch_bytes = 0;  // of each thread of the host; of a GPU's block, shared memory beside its own
  int64_t calls = 1;         // that touch nothing of each other's; a GPU's kernel is made for so many
  bool waits = false;        // starts when all that the stream was given before has ended
  /// Parameters before the slots, of a GPU's kernel of one call.
  std::span<const TensorMap> maps = {};
};

/// How loops for it are made.
enum class Loops : uint8_t { Cpu, Gpu };

struct Properties {
  std::string name;   // of the model
  size_t memory = 0;  // bytes
  int processors = 1;
  Loops loops = Loops::Cpu;
  /// What schedules are made for, and what code is: "x86-64+avx512", "nvptx+sm_90". They differ where a GPU's loops run on the CPU.
  std::string target, code;
  /// Of the compiler's tables (compiler/libraries), in the order in which they are tried before code is generated. The host's run on
  /// copies of what lies elsewhere.
  std::vector<std::string_view> libraries = {"loops", "lapack", "host"};
  /// The host may touch its memory, and its work is done when a call returns.
  bool on_host = false;
  DeviceLimits limits = {};
};

/// A device that fails, whatever it was asked: the call may be right.
class DeviceError : public Error {
 public:
  using Error::Error;
};

class Device;

/// A point in the work of a stream, and in time.
class TimeMark {
 public:
  virtual ~TimeMark();
  virtual bool reached() const;
  /// The host waits.
  virtual void wait() const;
  /// What this stream, of a device of the same kind, is given from now on runs after it.
  virtual void hold(Device& device, Stream stream) const;
  /// Milliseconds from an earlier mark of the same device; waits for both.
  virtual double since(const TimeMark& earlier) const = 0;
};

/// One device. Thread-safe. Errors are brasa::Errors that name it.
class Device {
 public:
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  brasa::Device id() const { return id_; }
  const Properties& properties() const { return properties_; }
  bool on_host() const { return properties_.on_host; }
  /// "cpu", "cuda:1".
  std::string str() const { return id_.str(); }
  /// Whether tensors of this dtype can live here.
  virtual bool has(DType dtype) const;

  /// Memory for work of this stream; null for 0 bytes. OutOfMemoryError says what is there and what is not.
  virtual void* allocate(size_t bytes, Stream stream) = 0;
  /// With the arguments of `allocate`. Work of that stream that uses it may still be on its way.
  virtual void deallocate(void* p, size_t bytes, Stream stream) = 0;
  /// Another stream's work uses this memory: it is not given out again before that is done.
  virtual void record_stream(void* p, Stream stream);
  virtual DeviceStats statistics() const = 0;
  virtual void reset_peaks() = 0;
  virtual void empty_cache() = 0;
  /// Free and whole memory.
  virtual std::pair<size_t, size_t> memory() const = 0;
  /// The host's memory that copies read and write while the host goes on.
  virtual void* allocate_pinned(size_t bytes);
  virtual void deallocate_pinned(void* p, size_t bytes);

  /// `urgent`: its work goes first where the device has a choice.
  virtual Stream make_stream(bool urgent = false);
  virtual void destroy_stream(Stream stream);
  /// Waits. brasa::IndexError if a check of what was waited for failed.
  virtual void synchronize(Stream stream) = 0;
  virtual void synchronize() = 0;
  virtual Event record(Stream stream);
  /// What this stream is given from now on runs after the event.
  virtual void wait(Stream stream, Event event);
  virtual bool done(Event event);
  /// The host waits.
  virtual void synchronize_event(Event event);
  /// A point in the stream's work that knows when it was reached, if it is `timed`. Devices without a clock of their own wait for it here.
  virtual std::unique_ptr<TimeMark> mark_time(Stream stream, bool timed = true);
  /// The stream as the libraries of this kind of device know it; the device is current in this thread then.
  virtual void* native_stream(Stream stream);

  /// From the host's memory, which may change when this returns; `pinned`: only when the copy is done.
  virtual void upload(void* to, const void* from, size_t bytes, Stream stream, bool pinned = false) = 0;
  /// To the host's memory, which has it when this returns; `pinned`: when the copy is done. Raises what checks found.
  virtual void download(void* to, const void* from, size_t bytes, Stream stream, bool pinned = false) = 0;
  virtual void copy(void* to, const void* from, size_t bytes, Stream stream) = 0;
  virtual void fill(void* p, uint8_t byte, size_t bytes, Stream stream) = 0;

  virtual std::shared_ptr<const Module> load(const KernelImage& image) = 0;
  virtual void launch(const Launch& launch, Stream stream) = 0;

  /// 8 bytes of its memory, zero: what a failed check writes its number into. Null where checks are looked at at once.
  virtual void* error_word();
  /// What checks of one run say where they fail; a check's number is the first one and its place among these.
  using Messages = std::shared_ptr<const std::vector<std::string>>;
  /// The first number for checks of work to come on this stream: a new one, or `first`, which an earlier call gave for the same messages.
  virtual Slot expect(Stream stream, Messages messages, Slot first = 0);
  /// Whether all that the stream was given is done.
  virtual bool idle(Stream stream);

 protected:
  Device(brasa::Device id, Properties properties) : id_(id), properties_(std::move(properties)) {}

 private:
  brasa::Device id_;

 protected:
  Properties properties_;
};

/// One kind of devices.
struct DeviceRow {
  std::string_view name;
  DeviceType type;
  /// 0 where there are none.
  int (*count)();
  /// 0 <= index < count(). Lives for ever.
  Device& (*device)(int index);
  /// Why there are none; null where there is always one.
  std::string (*why_none)() = nullptr;
  /// DLPack's number of this kind; 0: it has none.
  int32_t dlpack = 0;
  /// What autocast makes of float32 here unless the user says otherwise.
  DType autocast = DType::BFloat16;
  /// What this kind of devices needs on this machine, and whether it is there.
  void (*examine)(std::vector<Finding>& findings) = nullptr;
};

/// The table, in order: devices.cpp lists it.
std::span<const DeviceRow* const> device_rows();
/// One more, for ever: of a test, or of a library that brings a device.
void add_device_row(const DeviceRow& row);
/// Null if there is none.
const DeviceRow* find_device_row(DeviceType type);
const DeviceRow* find_device_row(std::string_view name);

/// The host's.
Device& host();
/// brasa::Error where there is no such device.
Device& device_of(brasa::Device device);

/// Whose pinned memory the host uses: the first device of the table that is there and not the host.
Device& pinning_device();

/// The stream of a device that this thread's work goes to.
Stream current_stream(const Device& device);
void set_current_stream(const Device& device, Stream stream);
/// One of a few streams that a device keeps for everybody, in turn.
Stream stream_from_pool(Device& device, bool urgent);
/// What `after` is given from now on runs after what `before` has been given.
void chain(Device& device, Stream before, Stream after);
class StreamScope {
 public:
  StreamScope(Device& device, Stream stream);
  ~StreamScope();
  StreamScope(const StreamScope&) = delete;

 private:
  size_t slot_;
  Stream before_;
};

/// Whether a callback may have freed memory; their errors go through to the caller.
bool ask_for_memory(brasa::Device device, size_t bytes);

/// Copies from devices to the host for steps that only the host can run, since the start: what is left to do for GPUs.
std::atomic<int64_t>& host_steps();

}  // namespace brasa::runtime
