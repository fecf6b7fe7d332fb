#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/device.h"

namespace brasa::compiler {

/// A compiled kernel on its device; alive as long as its code.
struct LoadedKernel {
  std::shared_ptr<const runtime::Module> code;
  runtime::Function function = nullptr;
  explicit operator bool() const { return function; }
};

/// The kernels of these loop graphs (texts without a name), in order, loaded on the device: from this process, the pack beside the
/// library, the disk cache, or the code generator, which then compiles all missing ones at once. `options` follow the device's
/// target: ";strict".
std::vector<LoadedKernel> load_kernels(std::span<const std::string> texts, runtime::Device& device,
                                       const std::string& options = "");

/// How often each source had to answer, for tests and `explain`.
struct KernelCounts {
  int64_t memory = 0, pack = 0, disk = 0, compiled = 0;
};
KernelCounts kernel_counts();

}  // namespace brasa::compiler
