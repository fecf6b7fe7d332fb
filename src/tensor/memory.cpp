#include <brasa/memory.h>

#include "runtime/cpu/allocator.h"

namespace brasa {

MemoryStats memory_stats() { return runtime::cpu::memory_stats(); }
void reset_peak_memory_stats() { runtime::cpu::reset_peak(); }

}  // namespace brasa
