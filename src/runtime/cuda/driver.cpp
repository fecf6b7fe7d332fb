// All versions of its functions: symbols are bound by their full names.
#if __has_include(<cuda.h>)
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#define BRASA_CHECK_PROTOTYPES
#endif

#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "runtime/device.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::runtime::cuda {
namespace {

Loaded<Driver> load() {
  constexpr const char* kNames[] = {"libcuda.so.1"};
  Library library = open_library(kNames);
  if (!library.handle) return {nullptr, str("no NVIDIA driver: ", library.why_not)};
  static Driver d;
  bool all =
      BRASA_BIND(library, cuInit, d.init) && BRASA_BIND(library, cuDriverGetVersion, d.get_version) &&
      BRASA_BIND(library, cuGetErrorName, d.get_error_name) &&
      BRASA_BIND(library, cuGetErrorString, d.get_error_string) &&
      BRASA_BIND(library, cuDeviceGetCount, d.device_get_count) && BRASA_BIND(library, cuDeviceGet, d.device_get) &&
      BRASA_BIND(library, cuDeviceGetName, d.device_get_name) &&
      BRASA_BIND(library, cuDeviceGetAttribute, d.device_get_attribute) &&
      BRASA_BIND(library, cuDeviceTotalMem_v2, d.device_total_memory) &&
      BRASA_BIND(library, cuDevicePrimaryCtxRetain, d.primary_context_retain) &&
      BRASA_BIND(library, cuCtxSetCurrent, d.context_set_current) &&
      BRASA_BIND(library, cuCtxSynchronize, d.context_synchronize) &&
      BRASA_BIND(library, cuMemAlloc_v2, d.memory_allocate) && BRASA_BIND(library, cuMemFree_v2, d.memory_free) &&
      BRASA_BIND(library, cuMemAllocHost_v2, d.memory_allocate_host) &&
      BRASA_BIND(library, cuMemFreeHost, d.memory_free_host) &&
      BRASA_BIND(library, cuMemcpyHtoDAsync_v2, d.copy_to_device) &&
      BRASA_BIND(library, cuMemcpyDtoHAsync_v2, d.copy_to_host) &&
      BRASA_BIND(library, cuMemcpyDtoDAsync_v2, d.copy_on_device) &&
      BRASA_BIND(library, cuMemsetD8Async, d.set_bytes) &&
      BRASA_BIND(library, cuStreamCreateWithPriority, d.stream_create) &&
      BRASA_BIND(library, cuStreamDestroy_v2, d.stream_destroy) && BRASA_BIND(library, cuStreamQuery, d.stream_query) &&
      BRASA_BIND(library, cuStreamSynchronize, d.stream_synchronize) &&
      BRASA_BIND(library, cuStreamWaitEvent, d.stream_wait_event) &&
      BRASA_BIND(library, cuEventCreate, d.event_create) && BRASA_BIND(library, cuEventRecord, d.event_record) &&
      BRASA_BIND(library, cuEventQuery, d.event_query) &&
      BRASA_BIND(library, cuEventSynchronize, d.event_synchronize) &&
      BRASA_BIND(library, cuEventDestroy_v2, d.event_destroy) &&
      BRASA_BIND(library, cuEventElapsedTime, d.event_elapsed_time) &&
      BRASA_BIND(library, cuMemGetInfo_v2, d.memory_get_info) &&
      BRASA_BIND(library, cuModuleLoadDataEx, d.module_load) && BRASA_BIND(library, cuModuleUnload, d.module_unload) &&
      BRASA_BIND(library, cuModuleGetFunction, d.module_get_function) &&
      BRASA_BIND(library, cuFuncSetAttribute, d.function_set_attribute) &&
      BRASA_BIND(library, cuLaunchKernel, d.launch_kernel) && BRASA_BIND(library, cuLaunchKernelEx, d.launch_with) &&
      BRASA_BIND(library, cuStreamBeginCapture_v2, d.begin_capture) &&
      BRASA_BIND(library, cuStreamGetCaptureInfo_v2, d.capture_info) &&
      BRASA_BIND(library, cuStreamEndCapture, d.end_capture) &&
      BRASA_BIND(library, cuGraphInstantiateWithFlags, d.graph_instantiate) &&
      BRASA_BIND(library, cuGraphExecKernelNodeSetParams_v2, d.graph_change) &&
      BRASA_BIND(library, cuGraphLaunch, d.graph_launch) && BRASA_BIND(library, cuGraphDestroy, d.graph_destroy) &&
      BRASA_BIND(library, cuGraphExecDestroy, d.runnable_destroy);
  if (!all) return {nullptr, str("the NVIDIA driver is too old: ", dlerror()), library};
  BRASA_BIND(library, cuTensorMapEncodeTiled, d.tensor_map_encode);
  if (Result r = d.init(0)) {
    const char* text = nullptr;
    d.get_error_string(r, &text);
    return {nullptr, str("the NVIDIA driver does not start: ", text ? text : "unknown error"), library};
  }
  return {&d, "", library};
}

const Loaded<Driver>& loaded() {
  static constinit Lazy<Loaded<Driver>> l(load);
  return *l;
}

}  // namespace

const Library& driver_library() { return loaded().library; }
const Driver* find_driver() { return loaded().functions; }

std::string why_no_driver() {
  return loaded().functions ? std::string("the NVIDIA driver finds no GPU") : loaded().why_not;
}

const Driver& driver() {
  BRASA_CHECK(loaded().functions, "device 'cuda': ", loaded().why_not);
  return *loaded().functions;
}

void check(Result result, const char* call) {
  if (result == 0) return;
  const char *name = nullptr, *text = nullptr;
  driver().get_error_name(result, &name);
  driver().get_error_string(result, &text);
  throw DeviceError(str("CUDA: ", call, " failed: ", name ? name : "", " (", text ? text : "unknown error", ")"));
}

}  // namespace brasa::runtime::cuda
