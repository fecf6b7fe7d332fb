#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <brasa/export.h>

namespace brasa {

/// Runs of equal kernels, or calls of a library's function, while a trace was on.
struct KernelTime {
  std::string what;  ///< what was fused, and its schedule, as Explanation::Graph::kernels has it
  int64_t calls = 0;
  double milliseconds = 0;  ///< of all of them, by the device's clock, from the end of what ran before
  int64_t bytes = 0;        ///< that all of them read and wrote, of tensors of constant size
  double flops = 0;         ///< of products
};

/// From now on the kernels of compiled graphs are timed one by one, of all threads.
BRASA_API void start_trace();
/// What was timed since, the largest share first.
BRASA_API std::vector<KernelTime> stop_trace();

}  // namespace brasa
