#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cpu/code.h"
#include "runtime/cuda/driver.h"

namespace brasa::compiler {

/// A compiled kernel of the CPU's or of a GPU's; alive as long as its code.
struct LoadedKernel {
  std::shared_ptr<const void> code;
  runtime::cpu::Kernel function = nullptr;
  runtime::cuda::FunctionHandle gpu_function = nullptr;
  explicit operator bool() const { return function || gpu_function; }
};

/// The kernels of these loop graphs (texts without a name), in order: from this process, the pack beside the library, the
/// disk cache, or the code generator, which then compiles all missing ones at once. For a GPU's target they are loaded on the
/// first GPU.
std::vector<LoadedKernel> load_kernels(std::span<const std::string> texts, const std::string& target);

/// How often each source had to answer, for tests and `explain`.
struct KernelCounts {
  int64_t memory = 0, pack = 0, disk = 0, compiled = 0;
};
KernelCounts kernel_counts();
/// Forgets the kernels of this process; what runs keeps its own.
void forget_kernels();

}  // namespace brasa::compiler
