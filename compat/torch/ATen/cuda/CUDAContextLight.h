#pragma once

#include <c10/cuda/CUDAFunctions.h>
#include <torch/detail/cuda_types.h>

#include <algorithm>
#include <map>
#include <mutex>

namespace at::cuda {

inline int64_t getNumGPUs() { return ::brasa::cuda::device_count(); }
inline bool is_available() { return ::brasa::cuda::is_available(); }

/// What Brasa knows of the model; the structure's other fields are 0.
inline cudaDeviceProp* getDeviceProperties(::brasa::DeviceIndex device) {
  static std::mutex mutex;
  static std::map<int, cudaDeviceProp> known;
  std::lock_guard lock(mutex);
  ::brasa::Device there = ::brasa::resolved(::brasa::cuda::device_of(device));
  auto [it, fresh] = known.try_emplace(there.index());
  cudaDeviceProp& p = it->second;
  if (!fresh) return &p;
  const ::brasa::DeviceProperties facts = ::brasa::get_device_properties(there);
  std::copy_n(facts.name.c_str(), std::min(facts.name.size() + 1, sizeof p.name - 1), p.name);
  p.totalGlobalMem = facts.total_memory;
  p.sharedMemPerBlock = facts.shared_memory_per_block;
  p.sharedMemPerBlockOptin = facts.shared_memory_per_block_optin;
  p.sharedMemPerMultiprocessor = facts.shared_memory_per_multiprocessor;
  p.major = facts.major;
  p.minor = facts.minor;
  p.multiProcessorCount = facts.multi_processor_count;
  p.warpSize = facts.warp_size;
  p.maxThreadsPerBlock = facts.max_threads_per_block;
  p.maxThreadsPerMultiProcessor = facts.max_threads_per_multi_processor;
  p.regsPerMultiprocessor = facts.regs_per_multiprocessor;
  p.l2CacheSize = static_cast<int>(facts.L2_cache_size);
  p.integrated = facts.is_integrated;
  return &p;
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(-1); }
inline int warp_size() { return getCurrentDeviceProperties()->warpSize; }

}  // namespace at::cuda
