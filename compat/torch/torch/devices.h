#pragma once

#include <brasa/cuda.h>
#include <torch/macros.h>

#include <optional>
#include <ostream>
#include <vector>

// Streams, events and guards of all kinds of devices; those of CUDA by name are in c10/cuda and ATen/cuda.
namespace brasa {
inline std::ostream& operator<<(std::ostream& out, const Stream& s) {
  return out << "stream " << s.id() << " on device " << s.device();
}
}  // namespace brasa

namespace c10 {

using StreamId = int64_t;
using ::brasa::DeviceGuard;
using ::brasa::Stream;
using ::brasa::StreamGuard;

/// A guard of T that there need not be.
template <class T, class Value>
class OptionalGuard {
 public:
  OptionalGuard() = default;
  explicit OptionalGuard(std::optional<Value> value) {
    if (value) guard_.emplace(*value);
  }
  explicit OptionalGuard(const Value& value) : guard_(std::in_place, value) {}
  void reset() { guard_.reset(); }

 protected:
  std::optional<T> guard_;
};

class OptionalDeviceGuard : public OptionalGuard<DeviceGuard, ::brasa::Device> {
 public:
  using OptionalGuard::OptionalGuard;
  void reset_device(::brasa::Device device) { guard_ ? guard_->set_device(device) : void(guard_.emplace(device)); }
  std::optional<::brasa::Device> original_device() const {
    return guard_ ? std::optional(guard_->original_device()) : std::nullopt;
  }
  std::optional<::brasa::Device> current_device() const {
    return guard_ ? std::optional(guard_->current_device()) : std::nullopt;
  }
};

class OptionalStreamGuard : public OptionalGuard<StreamGuard, Stream> {
 public:
  using OptionalGuard::OptionalGuard;
  void reset_stream(const Stream& stream) { guard_ ? guard_->reset_stream(stream) : void(guard_.emplace(stream)); }
  std::optional<Stream> original_stream() const {
    return guard_ ? std::optional(guard_->original_stream()) : std::nullopt;
  }
  std::optional<Stream> current_stream() const {
    return guard_ ? std::optional(guard_->current_stream()) : std::nullopt;
  }
};

enum class EventFlag { PYTORCH_DEFAULT, BACKEND_DEFAULT, INVALID };

/// A point in the work of a stream; BACKEND_DEFAULT: with its time.
class Event : public ::brasa::Event {
 public:
  explicit Event(::brasa::DeviceType type, EventFlag flag = EventFlag::PYTORCH_DEFAULT)
      : ::brasa::Event(flag == EventFlag::BACKEND_DEFAULT), type_(type), flag_(flag) {}
  ::brasa::DeviceType device_type() const noexcept { return type_; }
  EventFlag flag() const noexcept { return flag_; }
  bool was_marked_for_recording() const noexcept { return recorded(); }
  void record(const Stream& stream) {
    TORCH_CHECK(stream.device_type() == type_, "Event device type ", type_,
                " does not match recording stream's device type ", stream.device_type(), ".");
    ::brasa::Event::record(stream);
  }
  void recordOnce(const Stream& stream) {
    if (!recorded()) record(stream);
  }
  double elapsedTime(const Event& end) const { return double{elapsed_time(end)}; }

 private:
  ::brasa::DeviceType type_;
  EventFlag flag_;
};

}  // namespace c10

namespace torch::cuda {
using ::brasa::cuda::cudnn_is_available;
using ::brasa::cuda::current_device;
using ::brasa::cuda::device_count;
using ::brasa::cuda::empty_cache;
using ::brasa::cuda::is_available;
using ::brasa::cuda::manual_seed;
using ::brasa::cuda::manual_seed_all;
using ::brasa::cuda::max_memory_allocated;
using ::brasa::cuda::max_memory_reserved;
using ::brasa::cuda::mem_get_info;
using ::brasa::cuda::memory_allocated;
using ::brasa::cuda::memory_reserved;
using ::brasa::cuda::memory_stats;
using ::brasa::cuda::reset_peak_memory_stats;
using ::brasa::cuda::set_device;
inline void synchronize(int64_t device_index = -1) {
  TORCH_CHECK(is_available(), "No CUDA GPUs are available");
  TORCH_CHECK(device_index < device_count(), "Device index out of range: ", device_index);
  ::brasa::cuda::synchronize(static_cast<int>(device_index));
}
}  // namespace torch::cuda
