#pragma once

#include <type_traits>
#include <vector>

#include "runtime/cpu/allocator.h"

namespace brasa::compiler {

/// Memory that the next call finds again, so that its pages are not faulted in; elements are not set to anything.
template <class T>
struct ScratchAllocator {
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;
  ScratchAllocator() = default;
  template <class U>
  ScratchAllocator(const ScratchAllocator<U>&) {}  // NOLINT: that of another type takes the same memory
  T* allocate(size_t n) { return static_cast<T*>(runtime::cpu::allocate(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept { runtime::cpu::deallocate(p, n * sizeof(T)); }
  template <class U>
  void construct(U*) {}
  bool operator==(const ScratchAllocator&) const { return true; }
};

template <class T>
using Scratch = std::vector<T, ScratchAllocator<T>>;

}  // namespace brasa::compiler
