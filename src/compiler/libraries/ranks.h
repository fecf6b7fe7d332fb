#pragma once

#include <cstddef>
#include <cstdint>

// Places in the order of few elements: each is compared with all others, a vector of them at a time, without a branch that depends on them.
namespace brasa::compiler {

/// From so many elements on sorting takes less time.
inline constexpr size_t kMostRanked = 128;

/// How many of `count` elements are before each in their stable order. Both arrays have room for kMostRanked.
void find_ranks(const int32_t* keys, size_t count, int32_t* ranks);
void find_ranks(const int64_t* keys, size_t count, int64_t* ranks);

}  // namespace brasa::compiler
