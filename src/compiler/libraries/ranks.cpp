#include "compiler/libraries/ranks.h"

#include <algorithm>
#include <cstring>

namespace brasa::compiler {
namespace {

// The ranks of as many elements as a vector of `bytes` has are counted in a register. Of two equal elements the first one is before the
// other.
template <int bytes, class Key>
[[gnu::always_inline]] inline void count_before(const Key* keys, size_t count, Key* ranks) {
  typedef Key Vector __attribute__((vector_size(bytes)));
  constexpr size_t kLanes = bytes / sizeof(Key);
  Vector lane;
  for (size_t i = 0; i < kLanes; ++i) lane[i] = static_cast<Key>(i);
  for (size_t first = 0; first < count; first += kLanes) {
    Vector own, before = Vector{} + static_cast<Key>(first);
    std::memcpy(&own, keys + first, sizeof own);
    size_t end = std::min(first + kLanes, count);
    for (size_t j = 0; j < first; ++j) before += (Vector{} + keys[j]) > own;
    for (size_t j = first; j < end; ++j) {
      Vector key = Vector{} + keys[j];
      before -= (key < own) | ((key == own) & (lane > Vector{} + static_cast<Key>(j - first)));
    }
    for (size_t j = end; j < count; ++j) before -= (Vector{} + keys[j]) < own;
    std::memcpy(ranks + first, &before, sizeof before);
  }
}

#ifdef __x86_64__
template <class Key>
__attribute__((target("avx2"))) void count_before_avx2(const Key* keys, size_t count, Key* ranks) {
  count_before<32>(keys, count, ranks);
}
#endif

template <class Key>
void find(const Key* keys, size_t count, Key* ranks) {
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx2")) return count_before_avx2(keys, count, ranks);
#endif
  count_before<16>(keys, count, ranks);
}

}  // namespace

void find_ranks(const int32_t* keys, size_t count, int32_t* ranks) { find(keys, count, ranks); }
void find_ranks(const int64_t* keys, size_t count, int64_t* ranks) { find(keys, count, ranks); }

}  // namespace brasa::compiler
