#pragma once

#include <functional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/pooled.h"

namespace brasa {

/// The pool for containers, and for objects that are shared.
template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT: that of another type is the same pool
  T* allocate(size_t n) { return static_cast<T*>(pool_allocate(n * sizeof(T))); }
  void deallocate(T* p, size_t n) noexcept { pool_deallocate(p, n * sizeof(T)); }
  bool operator==(const PoolAllocator&) const { return true; }
};

template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;
template <class K, class V>
using PooledMap = std::unordered_map<K, V, std::hash<K>, std::equal_to<K>, PoolAllocator<std::pair<const K, V>>>;

}  // namespace brasa
