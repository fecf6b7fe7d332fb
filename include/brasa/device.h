#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <brasa/error.h>
#include <brasa/export.h>
#include <brasa/options.h>

namespace brasa {

/// How many devices of this kind the machine has; 0 for a kind that Brasa does not know.
BRASA_API int device_count(DeviceType type);
/// Whether tensors can live there.
BRASA_API bool is_available(Device device);

/// The device with its number: the current one of its kind where `device` says none; CPUs have no number. brasa::Error where there is none.
BRASA_API Device resolved(Device device);
/// Where factories make tensors that are not told: the CPU, or what BRASA_DEVICE names when the process starts.
BRASA_API Device get_default_device();
BRASA_API void set_default_device(Device device);

/// What a GPU's hardware has; 0 where a kind of devices has no such thing. Names here and below are those of
/// torch.cuda.get_device_properties.
struct DeviceLimits {
  int major = 0, minor = 0;  ///< compute capability
  int warp_size = 0;
  int max_threads_per_block = 0, max_threads_per_multi_processor = 0, regs_per_multiprocessor = 0;
  size_t shared_memory_per_block = 0, shared_memory_per_block_optin = 0,
         shared_memory_per_multiprocessor = 0;  ///< bytes
  size_t L2_cache_size = 0;                     ///< bytes
  bool is_integrated = false;
};
struct DeviceProperties : DeviceLimits {
  std::string name;         ///< of the model
  size_t total_memory = 0;  ///< bytes
  int multi_processor_count = 1;
};
BRASA_API DeviceProperties get_device_properties(Device device);

/// Makes a device the current one of its kind in this thread: the one that "cuda" without a number means.
BRASA_API void set_current_device(Device device);
/// The same while it lives.
class BRASA_API DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  /// Another one, until the end of the guard. Of another kind: the first kind's device is current again.
  void set_device(Device device);
  Device original_device() const { return original_; }
  Device current_device() const { return current_; }

 private:
  Device original_, current_;
};

/// Waits for the work of all streams of a device. brasa::IndexError where a check of that work failed (an index out of range).
BRASA_API void synchronize(Device device);

/// How exact float32 products of matrices are on devices that know less exact ones, by torch's names: "highest", the default; "high" or
/// "medium", which may round operands to TF32's 10 bits.
BRASA_API void set_float32_matmul_precision(const std::string& precision);
BRASA_API std::string get_float32_matmul_precision();

/// A number that goes up and down.
struct Stat {
  int64_t current = 0, peak = 0;
  int64_t allocated = 0, freed = 0;  ///< since the start: their difference is `current`
};

/// What a device's allocator did, by the names of torch.cuda.memory_stats.
struct DeviceStats {
  Stat allocation, segment, active, inactive_split;  ///< numbers of blocks
  Stat allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
  int64_t num_alloc_retries = 0;  ///< how often kept memory had to be given back first
  int64_t num_ooms = 0;
};
BRASA_API DeviceStats memory_stats(Device device);
BRASA_API void reset_peak_memory_stats(Device device);
/// Gives memory that is kept for reuse back to the device.
BRASA_API void empty_cache(Device device);
/// Free and whole memory of the device, in bytes.
BRASA_API std::pair<size_t, size_t> mem_get_info(Device device);

/// Called when memory for `bytes` is missing; true if it may have freed some.
using MemoryCallback = std::function<bool(Device device, size_t bytes)>;
/// Asked in turn, until there is enough; gives a handle for removing it.
BRASA_API int add_memory_callback(MemoryCallback callback);
BRASA_API void remove_memory_callback(int handle);

}  // namespace brasa
