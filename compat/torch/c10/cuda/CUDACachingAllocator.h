#pragma once

#include <c10/cuda/CUDAStream.h>

namespace c10 {

namespace CachingAllocator {
enum struct StatType : uint64_t { AGGREGATE = 0, SMALL_POOL = 1, LARGE_POOL = 2, NUM_TYPES = 3 };
}  // namespace CachingAllocator

namespace CachingDeviceAllocator {
using Stat = ::brasa::Stat;

/// Brasa counts blocks of all sizes together: AGGREGATE is what there is.
struct StatArray : Stat {
  StatArray(const Stat& s = {}) : Stat(s) {}  // NOLINT
  const Stat& operator[](size_t type) const {
    TORCH_CHECK(type == static_cast<size_t>(CachingAllocator::StatType::AGGREGATE),
                "statistics of small and large blocks alone are not kept: take StatType::AGGREGATE");
    return *this;
  }
};

struct DeviceStats {
  StatArray allocation, segment, active, inactive_split;
  StatArray allocated_bytes, reserved_bytes, active_bytes, inactive_split_bytes;
  int64_t num_alloc_retries = 0, num_ooms = 0;
};
}  // namespace CachingDeviceAllocator

namespace cuda::CUDACachingAllocator {

using CachingAllocator::StatType;
using CachingDeviceAllocator::DeviceStats;
using CachingDeviceAllocator::Stat;
using CachingDeviceAllocator::StatArray;

inline void emptyCache() {
  for (int i = 0; i < ::brasa::cuda::device_count(); ++i) ::brasa::empty_cache(::brasa::cuda::device_of(i));
}
inline DeviceStats getDeviceStats(::brasa::DeviceIndex device) {
  ::brasa::DeviceStats s = ::brasa::cuda::memory_stats(device);
  return {s.allocation,        s.segment,        s.active,       s.inactive_split,
          s.allocated_bytes,   s.reserved_bytes, s.active_bytes, s.inactive_split_bytes,
          s.num_alloc_retries, s.num_ooms};
}
inline void resetPeakStats(::brasa::DeviceIndex device) { ::brasa::cuda::reset_peak_memory_stats(device); }
inline std::pair<size_t, size_t> getMemoryInfo(::brasa::DeviceIndex device) {
  return ::brasa::cuda::mem_get_info(device);
}

}  // namespace cuda::CUDACachingAllocator
}  // namespace c10
