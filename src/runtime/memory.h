#pragma once

#include <cstddef>
#include <cstdint>

namespace brasa::runtime {

/// What an allocator has handed out and keeps.
struct MemoryStats {
  int64_t allocated = 0;  // bytes in use now
  int64_t peak = 0;       // the most at any time since the last reset
  int64_t cached = 0;     // bytes kept for reuse
};

}  // namespace brasa::runtime
