#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace brasa::compiler {

/// As many rows and columns of numbers as a register of 16 bytes has lanes, from one matrix's memory to that of its transpose.
template <class T>
void turn_square(const T* from, int64_t apart, T* to, int64_t to_apart) {
  typedef T Row __attribute__((vector_size(16), aligned(alignof(T)), may_alias));
  auto row = [&](int k) { return *reinterpret_cast<const Row*>(from + k * apart); };
  auto put = [&](int k, const Row& x) { *reinterpret_cast<Row*>(to + k * to_apart) = x; };
  if constexpr (sizeof(T) == 8) {
    Row a = row(0), b = row(1);
    put(0, __builtin_shufflevector(a, b, 0, 2));
    put(1, __builtin_shufflevector(a, b, 1, 3));
  } else {
    Row a = row(0), b = row(1), c = row(2), d = row(3);
    Row ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    put(0, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    put(1, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
    ab = __builtin_shufflevector(a, b, 2, 6, 3, 7), cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    put(2, __builtin_shufflevector(ab, cd, 0, 1, 4, 5));
    put(3, __builtin_shufflevector(ab, cd, 2, 3, 6, 7));
  }
}

/// The transpose of a matrix whose rows begin `apart` from each other, into one whose rows begin `to_apart` from each other: in squares, of
/// which as many are beside each other as lie in the first cache until all of a line was read and written.
template <class T>
void transpose(const T* from, int64_t apart, T* to, int64_t to_apart, int64_t rows, int64_t cols) {
  constexpr int64_t kSide = 16, kLanes = sizeof(T) < 16 ? 16 / sizeof(T) : 1;
  if (kLanes == 1 || rows < kLanes || cols < kLanes) {
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < cols; ++j) to[j * to_apart + i] = from[i * apart + j];
    return;
  }
  using Element = std::conditional_t<sizeof(T) == 4, float, double>;
  // The last squares overlap others.
  for (int64_t top = 0; top < rows; top += kSide)
    for (int64_t left = 0; left < cols; left += kSide)
      for (int64_t r = top; r < std::min(top + kSide, rows); r += kLanes)
        for (int64_t c = left; c < std::min(left + kSide, cols); c += kLanes) {
          int64_t i = std::min(r, rows - kLanes), j = std::min(c, cols - kLanes);
          turn_square(reinterpret_cast<const Element*>(from + i * apart + j), apart,
                      reinterpret_cast<Element*>(to + j * to_apart + i), to_apart);
        }
}

}  // namespace brasa::compiler
