#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <brasa/export.h>
#include <brasa/options.h>

namespace brasa {

class Event;

/// A queue of a device's work: what it is given runs in order, and beside what other streams have. A handle, for ever valid. Operators
/// give their work to the stream that is current in their thread, and a backward pass to the stream of the forward pass. A compiled
/// function that changes the stream, or meets an event, has a graph break there. CPUs have one stream, on which the caller works.
class BRASA_API Stream {
 public:
  Stream(Device device, uint32_t id) : device_(device), id_(id) {}
  Device device() const { return device_; }
  DeviceType device_type() const { return device_.type(); }
  DeviceIndex device_index() const { return device_.index(); }
  /// 0 is the stream that every device has.
  uint32_t id() const { return id_; }
  /// Whether all that it was given is done.
  bool query() const;
  /// Waits for that. brasa::IndexError where a check of that work failed (an index out of range).
  void synchronize() const;
  /// What it is given from now on runs after the event.
  void wait(const Event& event) const;
  /// … after what the other one has been given.
  void wait_stream(const Stream& other) const;
  /// As the device's own libraries know it (a cudaStream_t); the device is current in this thread then.
  void* native_handle() const;
  friend bool operator==(const Stream&, const Stream&) = default;

 private:
  Device device_;
  uint32_t id_;
};

/// The stream that every device has. brasa::Error where there is no such device, here and below.
BRASA_API Stream default_stream(Device device);
/// The one that this thread's work goes to.
BRASA_API Stream current_stream(Device device);
BRASA_API void set_current_stream(const Stream& stream);
/// One of 32 streams that a device keeps for everybody, in turn; `urgent` ones go first where the device has a choice.
BRASA_API Stream stream_from_pool(Device device, bool urgent = false);

/// Makes a stream and its device the current ones of this thread while it lives.
class BRASA_API StreamGuard {
 public:
  explicit StreamGuard(const Stream& stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;
  /// Another one, until the end of the guard.
  void reset_stream(const Stream& stream);
  /// The one that was current before, on the device that was.
  Stream original_stream() const { return original_; }
  Stream current_stream() const { return current_; }
  Device original_device() const { return original_.device(); }
  Device current_device() const { return current_.device(); }

 private:
  void leave();
  Stream original_, current_, covered_;  // covered_: of the current one's device
};

/// A point in the work of a stream.
class BRASA_API Event {
 public:
  /// Not recorded yet. `timed`: it will know when it was reached.
  explicit Event(bool timed = false);
  /// Recorded here, in the current stream of a device, with its time.
  explicit Event(Device device);
  ~Event();
  Event(Event&& other) noexcept;
  Event& operator=(Event&& other) noexcept;

  /// Where the stream's work is now; a point that was recorded before is forgotten.
  void record(const Stream& stream);
  bool recorded() const { return impl_ != nullptr; }
  /// brasa::Error if it is not recorded.
  Device device() const;
  bool timed() const { return timed_; }
  // Of an event that is not recorded the three below think that it is reached.
  /// What the stream is given from now on runs after it.
  void block(const Stream& stream) const;
  bool query() const;
  /// The host waits for it.
  void synchronize() const;
  /// Milliseconds from here to a later one of the same device; waits for both. brasa::Error if one of them has no time.
  float elapsed_time(const Event& end) const;

 private:
  struct Impl;
  bool timed_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace brasa
