#pragma once

#include <cstdint>

#include <brasa/export.h>

namespace brasa {

/// What an allocator has handed out and keeps, in bytes.
struct MemoryStats {
  int64_t allocated = 0;  ///< in use now
  int64_t peak = 0;       ///< the most in use at any time since the last reset
  int64_t cached = 0;     ///< kept for reuse
};

/// Of the CPU's allocator, from which tensors and what kernels need beside them come.
BRASA_API MemoryStats memory_stats();
/// `peak` starts again at what is in use now.
BRASA_API void reset_peak_memory_stats();

}  // namespace brasa
