#pragma once

#include <torch/torch.h>

// For programs that call CUDA's runtime themselves, and so have its header.
#if __has_include(<cuda_runtime_api.h>)
#include <cuda_runtime_api.h>

#define C10_CUDA_CHECK(call)                                                                      \
  do {                                                                                            \
    const cudaError_t error_of_call = (call);                                                     \
    TORCH_CHECK(error_of_call == cudaSuccess, "CUDA error: ", cudaGetErrorString(error_of_call)); \
  } while (false)
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
#define AT_CUDA_CHECK(call) C10_CUDA_CHECK(call)
#endif
