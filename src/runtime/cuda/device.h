#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <brasa/memory.h>

#include "runtime/cuda/driver.h"
#include "runtime/image.h"

namespace brasa::runtime::cuda {

/// 0 where there is no driver or no GPU.
int device_count();

/// One GPU with its primary context. Work runs in order on one stream; memory that is given back may be handed out again
/// at once, because whatever still uses it comes before in that stream. Thread-safe.
class Device {
 public:
  /// brasa::Error if there is no such GPU.
  static Device& get(int index = 0);

  const std::string& name() const { return name_; }
  /// For the code generator: "nvptx+sm_90".
  const std::string& target() const { return target_; }
  int multiprocessors() const { return multiprocessors_; }

  /// Device memory, kept for reuse when given back; null for 0 bytes.
  void* allocate(size_t bytes);
  void deallocate(void* p, size_t bytes);
  MemoryStats memory_stats() const;
  void empty_cache();

  /// The caller's memory may be reused when these return.
  void copy_to_device(void* to, const void* from, size_t bytes);
  void copy_to_host(void* to, const void* from, size_t bytes);
  /// In stream order.
  void copy_on_device(void* to, const void* from, size_t bytes);
  void fill_zero(void* p, size_t bytes);
  void synchronize();

  StreamHandle stream() const { return stream_; }
  /// Makes the device current in this thread.
  void use() const;

 private:
  explicit Device(int index);
  struct Cache;
  int multiprocessors_ = 0;
  std::string name_, target_;
  ContextHandle context_ = nullptr;
  StreamHandle stream_ = nullptr;
  std::unique_ptr<Cache> cache_;
};

/// A PTX image turned into the GPU's code by the driver.
class Module {
 public:
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;
  /// brasa::Error if the image has no such kernel.
  FunctionHandle kernel(std::string_view name) const;

 private:
  friend std::shared_ptr<const Module> load(Device& device, const KernelImage& image);
  explicit Module(Device& device) : device_(device) {}
  Device& device_;
  ModuleHandle module_ = nullptr;
  std::unordered_map<std::string, FunctionHandle> kernels_;
};

/// brasa::Error with the driver's log if it rejects the image.
std::shared_ptr<const Module> load(Device& device, const KernelImage& image);

/// Queues `count` blocks of `threads` threads. The kernel's parameters are all buffers, then all sizes.
void launch(Device& device, FunctionHandle kernel, const std::vector<void*>& buffers, const std::vector<int64_t>& sizes,
            int64_t count, int64_t threads);

}  // namespace brasa::runtime::cuda
