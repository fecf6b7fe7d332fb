#pragma once

#include <cstddef>

#include <brasa/memory.h>

namespace brasa::runtime::cpu {

/// 64-byte aligned memory that is kept for reuse when given back, so that the output of a step does not fault its
/// pages in again. Thread-safe. nullptr for 0 bytes; brasa::Error when there is no memory.
void* allocate(size_t bytes);
/// `bytes` as given to `allocate`. Any thread; nullptr is allowed.
void deallocate(void* p, size_t bytes);

/// Gives all kept memory back to the system.
void empty_cache();
/// The most that is kept for reuse. The default is a quarter of the machine's memory, at most 4 GiB.
void set_cache_limit(size_t bytes);

}  // namespace brasa::runtime::cpu
