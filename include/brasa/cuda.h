#pragma once

#include <brasa/device.h>
#include <brasa/generator.h>
#include <brasa/stream.h>

/// NVIDIA GPUs by torch.cuda's names: each function is the one that all devices have, for devices of the kind `cuda`. An index below 0
/// is the current device. Where there is no GPU, `is_available` is false and what needs one is a brasa::Error that says what is missing.
namespace brasa::cuda {

inline Device device_of(int index = -1) { return Device(kCUDA, static_cast<DeviceIndex>(index)); }

inline DeviceIndex device_count() { return static_cast<DeviceIndex>(brasa::device_count(kCUDA)); }
inline bool is_available() { return device_count() > 0; }
/// Whether a cuDNN 9 can be loaded; Brasa's own kernels need none.
BRASA_API bool cudnn_is_available();
inline DeviceIndex current_device() { return resolved(device_of()).index(); }
inline void set_device(int index) { set_current_device(device_of(index)); }
inline DeviceProperties get_device_properties(int index = -1) { return brasa::get_device_properties(device_of(index)); }
inline std::string get_device_name(int index = -1) { return get_device_properties(index).name; }

/// One stream of random numbers serves all devices.
inline void manual_seed(uint64_t seed) { brasa::manual_seed(seed); }
inline void manual_seed_all(uint64_t seed) { brasa::manual_seed(seed); }

inline void synchronize(int index = -1) { brasa::synchronize(device_of(index)); }
inline Stream current_stream(int index = -1) { return brasa::current_stream(device_of(index)); }
inline Stream default_stream(int index = -1) { return brasa::default_stream(device_of(index)); }
inline Stream stream_from_pool(bool urgent = false, int index = -1) {
  return brasa::stream_from_pool(device_of(index), urgent);
}

inline DeviceStats memory_stats(int index = -1) { return brasa::memory_stats(device_of(index)); }
inline void reset_peak_memory_stats(int index = -1) { brasa::reset_peak_memory_stats(device_of(index)); }
inline void empty_cache() { brasa::empty_cache(device_of()); }
/// Free and whole memory, in bytes.
inline std::pair<size_t, size_t> mem_get_info(int index = -1) { return brasa::mem_get_info(device_of(index)); }
/// Bytes that tensors hold, and the allocator keeps; now, and at most since the start or reset_peak_memory_stats.
inline int64_t memory_allocated(int index = -1) { return memory_stats(index).allocated_bytes.current; }
inline int64_t max_memory_allocated(int index = -1) { return memory_stats(index).allocated_bytes.peak; }
inline int64_t memory_reserved(int index = -1) { return memory_stats(index).reserved_bytes.current; }
inline int64_t max_memory_reserved(int index = -1) { return memory_stats(index).reserved_bytes.peak; }

}  // namespace brasa::cuda
