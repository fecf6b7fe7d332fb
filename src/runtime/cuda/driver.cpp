#include "runtime/cuda/driver.h"

#include <dlfcn.h>

#include "runtime/cuda/library.h"
#include "runtime/device.h"
#include "support/error.h"

namespace brasa::runtime::cuda {
namespace {

template <class F>
bool bind(void* library, const char* name, F& function) {
  function = reinterpret_cast<F>(dlsym(library, name));
  return function != nullptr;
}

struct Loaded {
  const Driver* driver = nullptr;
  std::string why_not;
};

Loaded load() {
  constexpr const char* kNames[] = {"libcuda.so.1"};
  std::string why_not;
  void* library = open_library(kNames, why_not);
  if (!library) return {nullptr, str("no NVIDIA driver: ", why_not)};
  static Driver d;
  bool all =
      bind(library, "cuInit", d.init) && bind(library, "cuGetErrorName", d.get_error_name) &&
      bind(library, "cuGetErrorString", d.get_error_string) && bind(library, "cuDeviceGetCount", d.device_get_count) &&
      bind(library, "cuDeviceGet", d.device_get) && bind(library, "cuDeviceGetName", d.device_get_name) &&
      bind(library, "cuDeviceGetAttribute", d.device_get_attribute) &&
      bind(library, "cuDeviceTotalMem_v2", d.device_total_memory) &&
      bind(library, "cuDevicePrimaryCtxRetain", d.primary_context_retain) &&
      bind(library, "cuCtxSetCurrent", d.context_set_current) &&
      bind(library, "cuCtxSynchronize", d.context_synchronize) && bind(library, "cuMemAlloc_v2", d.memory_allocate) &&
      bind(library, "cuMemFree_v2", d.memory_free) && bind(library, "cuMemAllocHost_v2", d.memory_allocate_host) &&
      bind(library, "cuMemFreeHost", d.memory_free_host) && bind(library, "cuMemcpyHtoDAsync_v2", d.copy_to_device) &&
      bind(library, "cuMemcpyDtoHAsync_v2", d.copy_to_host) &&
      bind(library, "cuMemcpyDtoDAsync_v2", d.copy_on_device) && bind(library, "cuMemsetD8Async", d.set_bytes) &&
      bind(library, "cuStreamCreate", d.stream_create) && bind(library, "cuStreamDestroy_v2", d.stream_destroy) &&
      bind(library, "cuStreamSynchronize", d.stream_synchronize) &&
      bind(library, "cuStreamWaitEvent", d.stream_wait_event) && bind(library, "cuEventCreate", d.event_create) &&
      bind(library, "cuEventRecord", d.event_record) && bind(library, "cuEventQuery", d.event_query) &&
      bind(library, "cuEventSynchronize", d.event_synchronize) && bind(library, "cuEventDestroy_v2", d.event_destroy) &&
      bind(library, "cuEventElapsedTime", d.event_elapsed_time) &&
      bind(library, "cuMemGetInfo_v2", d.memory_get_info) && bind(library, "cuModuleLoadDataEx", d.module_load) &&
      bind(library, "cuModuleUnload", d.module_unload) && bind(library, "cuModuleGetFunction", d.module_get_function) &&
      bind(library, "cuLaunchKernel", d.launch_kernel);
  if (!all) return {nullptr, str("the NVIDIA driver is too old: ", dlerror())};
  if (Result r = d.init(0)) {
    const char* text = nullptr;
    d.get_error_string(r, &text);
    return {nullptr, str("the NVIDIA driver does not start: ", text ? text : "unknown error")};
  }
  return {&d, ""};
}

const Loaded& loaded() {
  static const Loaded l = load();
  return l;
}

}  // namespace

const Driver* find_driver() { return loaded().driver; }

std::string why_no_driver() {
  return loaded().driver ? std::string("the NVIDIA driver finds no GPU") : loaded().why_not;
}

const Driver& driver() {
  BRASA_CHECK(loaded().driver, "device 'cuda': ", loaded().why_not);
  return *loaded().driver;
}

void check(Result result, const char* call) {
  if (result == 0) return;
  const char *name = nullptr, *text = nullptr;
  driver().get_error_name(result, &name);
  driver().get_error_string(result, &text);
  throw DeviceError(str("CUDA: ", call, " failed: ", name ? name : "", " (", text ? text : "unknown error", ")"));
}

}  // namespace brasa::runtime::cuda
