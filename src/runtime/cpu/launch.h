#pragma once

#include "runtime/cpu/code.h"

namespace brasa::runtime::cpu {

/// Runs the kernel over [0, count) of its flattened parallel ranges on the thread pool, at least `grain` of them at a
/// time, each thread with `scratch_bytes` of its own memory.
void launch(KernelFunction kernel, const Slot* slots, int64_t count, int64_t grain = 1, size_t scratch_bytes = 0);

}  // namespace brasa::runtime::cpu
