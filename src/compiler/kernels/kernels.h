#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/loops/cost.h"
#include "runtime/device.h"

namespace brasa::compiler {

class BaselineKernel;

/// A compiled kernel on its device; alive as long as its code.
struct LoadedKernel {
  std::shared_ptr<const runtime::Module> code;
  runtime::Function function = nullptr;
  /// Of one that began with baseline code: what runs instead of `function`.
  std::shared_ptr<BaselineKernel> baseline = nullptr;
  explicit operator bool() const { return function; }
};

/// The kernels of these loop graphs (texts without a name), in order, loaded on the device: from this process, the pack beside the
/// library, the disk cache, or the code generator, which then compiles all missing ones at once. `options` follow the device's
/// target: ";strict". With `costs` (not elsewhere than on the host) a kernel that is nowhere begins with baseline code where a run of it takes little
/// against the time that optimizing takes (baseline.h).
std::vector<LoadedKernel> load_kernels(std::span<const std::string> texts, runtime::Device& device,
                                       const std::string& options = "", std::span<const KernelCost> costs = {});

/// How often each source had to answer, for tests and `explain`.
struct KernelCounts {
  int64_t memory = 0, pack = 0, disk = 0, compiled = 0;
  int64_t optimized = 0;  // of those compiled: again, as they began with baseline code
};
KernelCounts kernel_counts();
void note_optimized(int64_t kernels);

}  // namespace brasa::compiler
