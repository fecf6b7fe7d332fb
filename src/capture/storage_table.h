#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "tensor/tensor_impl.h"

namespace brasa::capture {

/// Values of storages, found by address: open addressing, at most half full.
template <class T>
class StorageTable {
 public:
  /// With room for so many.
  explicit StorageTable(size_t count = 0) : slots_(std::bit_ceil(2 * count + 1)) {}

  /// Null where it has none.
  const T* find(const Storage* s) const {
    const Slot& at = slots_[place(s)];
    return at.storage ? &at.value : nullptr;
  }
  /// Made where it has none.
  T& operator[](const Storage* s) {
    if (2 * (used_ + 1) > slots_.size()) {
      std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(std::max<size_t>(16, 2 * slots_.size())));
      for (const Slot& o : old)
        if (o.storage) slots_[place(o.storage)] = o;
    }
    Slot& at = slots_[place(s)];
    if (!std::exchange(at.storage, s)) ++used_;
    return at.value;
  }
  void clear() {
    std::fill(slots_.begin(), slots_.end(), Slot{});
    used_ = 0;
  }

 private:
  struct Slot {
    const Storage* storage = nullptr;
    T value{};
  };
  // The storage's slot, or the empty one where it belongs.
  size_t place(const Storage* s) const {
    size_t mask = slots_.size() - 1;
    size_t i = static_cast<size_t>(reinterpret_cast<uintptr_t>(s) * 0x9E3779B97F4A7C15ull >> 32) & mask;
    while (slots_[i].storage && slots_[i].storage != s) i = (i + 1) & mask;
    return i;
  }

  std::vector<Slot> slots_;
  size_t used_ = 0;
};

}  // namespace brasa::capture
