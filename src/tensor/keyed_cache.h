#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/hash.h"
#include "support/small_vector.h"
#include "support/thread_object.h"

namespace brasa::eager {

/// What a thread found out for keys of words, so that nobody has to lock. With more than `most` entries it begins anew.
template <class T, size_t most>
class KeyedCache {
 public:
  using Key = SmallVector<int64_t, 32>;
  /// This thread's; null once its objects are gone.
  static KeyedCache* get() { return ThreadObject<KeyedCache>::get(); }

  /// Null where the key is unknown.
  const T* find(const Key& key) const {
    auto it = entries_.find(hash(key));
    if (it == entries_.end()) return nullptr;
    const auto& [known, value] = it->second;
    return std::equal(known.begin(), known.end(), key.begin(), key.end()) ? &value : nullptr;
  }
  const T& add(const Key& key, T value) {
    if (entries_.size() >= most) entries_.clear();
    return entries_.insert_or_assign(hash(key), std::pair(key.vec(), std::move(value))).first->second.second;
  }

 private:
  static uint64_t hash(const Key& key) {
    uint64_t h = 0;
    for (int64_t w : key) h = mix(h, static_cast<uint64_t>(w));
    return h;
  }
  std::unordered_map<uint64_t, std::pair<std::vector<int64_t>, T>> entries_;
};

}  // namespace brasa::eager
