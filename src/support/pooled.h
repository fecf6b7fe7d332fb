#pragma once

#include <cstddef>

namespace brasa {

/// Memory of small objects that come and go by the thousand: a recorded step makes and drops several for each operator, more
/// than malloc's own caches hold. Blocks of one size are kept by the thread that gave them back.
void* pool_allocate(size_t bytes);
void pool_deallocate(void* p, size_t bytes) noexcept;

/// Base of classes whose objects live in the pool.
struct Pooled {
  static void* operator new(size_t bytes) { return pool_allocate(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { pool_deallocate(p, bytes); }
};

}  // namespace brasa
