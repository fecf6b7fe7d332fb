#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace brasa {

/// Whether two signatures are the same. A loop, because they are too short to pay for a call of memcmp.
inline bool same_words(std::span<const uint64_t> a, std::span<const uint64_t> b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

}  // namespace brasa
