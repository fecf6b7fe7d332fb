#pragma once

// What CUDA's runtime calls its things, from its header where that is installed. Without it programs that only pass them on compile, too.
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>
#else
#include <cstddef>

struct CUstream_st;
using cudaStream_t = CUstream_st*;
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaEventInterprocess 0x04

/// The facts that Brasa knows.
struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  int regsPerMultiprocessor, l2CacheSize, integrated;
};
#endif
