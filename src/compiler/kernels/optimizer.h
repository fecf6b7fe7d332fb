#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "compiler/kernels/baseline.h"

namespace brasa::compiler {

using BaselineKernels = std::span<const std::shared_ptr<BaselineKernel>>;

/// Compiles these once more, all at once, and runs the optimized code from now on; waits for what another thread compiles just now.
void optimize(BaselineKernels kernels);

/// The same soon, without waiting: a thread of its own takes one after the other. In a process of one thread (set_num_threads) the caller
/// does it, one at least and more until `nanoseconds` have passed.
void optimize_soon(BaselineKernels kernels, int64_t nanoseconds = 0);
/// Whether no kernel of these is on its way to optimized code.
bool settled(BaselineKernels kernels);
/// Until that thread has nothing to do.
void wait_for_optimizer();

/// What that thread has taken of processor time.
int64_t optimizer_nanoseconds();

}  // namespace brasa::compiler
