#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/cuda/library.h"
#include "runtime/device.h"

// The part of the CUDA driver's interface that Brasa uses, declared here so that neither the build nor a machine without a
// GPU needs CUDA. libcuda.so.1 is loaded on first use.
namespace brasa::runtime::cuda {

using Result = int;
using DeviceNumber = int;
using DevicePointer = unsigned long long;
struct ContextHandle_;
struct ModuleHandle_;
struct FunctionHandle_;
struct StreamHandle_;
struct EventHandle_;
struct GraphHandle_;
struct NodeHandle_;
struct RunnableHandle_;
using ContextHandle = ContextHandle_*;
using ModuleHandle = ModuleHandle_*;
using FunctionHandle = FunctionHandle_*;
using StreamHandle = StreamHandle_*;
using EventHandle = EventHandle_*;
using GraphHandle = GraphHandle_*;
using NodeHandle = NodeHandle_*;
using RunnableHandle = RunnableHandle_*;

/// A graph's launch of a kernel.
struct NodeParameters {
  FunctionHandle function;
  unsigned blocks[3], threads[3], shared_bytes;
  void **parameters, **extra;
  void* kernel;           // instead of the function
  ContextHandle context;  // null: the current one
};

/// What a launch asks for besides: one of the driver's numbers, and its value.
struct LaunchAttribute {
  int id;
  char padding[4];
  union {
    char all[64];
    int allowed;
  } value;
};
struct LaunchConfig {
  unsigned blocks[3], threads[3], shared_bytes;
  StreamHandle stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct Driver {
  Result (*init)(unsigned);
  Result (*get_version)(int*);
  Result (*get_error_name)(Result, const char**);
  Result (*get_error_string)(Result, const char**);
  Result (*device_get_count)(int*);
  Result (*device_get)(DeviceNumber*, int);
  Result (*device_get_name)(char*, int, DeviceNumber);
  Result (*device_get_attribute)(int*, int, DeviceNumber);
  Result (*device_total_memory)(size_t*, DeviceNumber);
  Result (*primary_context_retain)(ContextHandle*, DeviceNumber);
  Result (*context_set_current)(ContextHandle);
  Result (*context_synchronize)();
  Result (*memory_allocate)(DevicePointer*, size_t);
  Result (*memory_free)(DevicePointer);
  Result (*memory_get_info)(size_t*, size_t*);
  Result (*memory_allocate_host)(void**, size_t);
  Result (*memory_free_host)(void*);
  Result (*copy_to_device)(DevicePointer, const void*, size_t, StreamHandle);
  Result (*copy_to_host)(void*, DevicePointer, size_t, StreamHandle);
  Result (*copy_on_device)(DevicePointer, DevicePointer, size_t, StreamHandle);
  Result (*set_bytes)(DevicePointer, unsigned char, size_t, StreamHandle);
  Result (*stream_create)(StreamHandle*, unsigned, int priority);
  Result (*stream_destroy)(StreamHandle);
  Result (*stream_query)(StreamHandle);
  Result (*stream_synchronize)(StreamHandle);
  Result (*stream_wait_event)(StreamHandle, EventHandle, unsigned);
  Result (*event_create)(EventHandle*, unsigned);
  Result (*event_record)(EventHandle, StreamHandle);
  Result (*event_query)(EventHandle);
  Result (*event_synchronize)(EventHandle);
  Result (*event_destroy)(EventHandle);
  Result (*event_elapsed_time)(float*, EventHandle, EventHandle);
  Result (*module_load)(ModuleHandle*, const void*, unsigned, int*, void**);
  Result (*module_unload)(ModuleHandle);
  Result (*module_get_function)(FunctionHandle*, ModuleHandle, const char*);
  Result (*function_set_attribute)(FunctionHandle, int, int);
  Result (*launch_kernel)(FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                          StreamHandle, void**, void**);
  Result (*launch_with)(const LaunchConfig*, FunctionHandle, void**, void**);
  Result (*begin_capture)(StreamHandle, int mode);
  Result (*capture_info)(StreamHandle, int* status, uint64_t* id, GraphHandle*, const NodeHandle** last, size_t* count);
  Result (*end_capture)(StreamHandle, GraphHandle*);
  Result (*graph_instantiate)(RunnableHandle*, GraphHandle, unsigned long long flags);
  Result (*graph_change)(RunnableHandle, NodeHandle, const NodeParameters*);
  Result (*graph_launch)(RunnableHandle, StreamHandle);
  Result (*graph_destroy)(GraphHandle);
  Result (*runnable_destroy)(RunnableHandle);
  /// Null where the driver is older than Hopper.
  Result (*tensor_map_encode)(TensorMap*, int type, unsigned rank, void* address, const uint64_t* sizes,
                              const uint64_t* steps, const unsigned* box, const unsigned* element_steps, int interleave,
                              int swizzle, int promotion, int fill);
};

/// The library as it was found.
const Library& driver_library();
/// Null where there is no driver.
const Driver* find_driver();
/// Why there is no driver, or no GPU.
std::string why_no_driver();
/// brasa::Error where there is no driver.
const Driver& driver();
/// brasa::Error that names the call and the driver's reason.
void check(Result result, const char* call);

}  // namespace brasa::runtime::cuda
