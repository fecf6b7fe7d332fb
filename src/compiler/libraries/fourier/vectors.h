#pragma once

#include <cstdint>
#include <utility>

// Vectors in registers, for the files that are compiled for several levels of instructions; they take BRASA_INLINE away again.
namespace brasa::compiler::fourier {
namespace {

// Everything below `run` is inlined into a function for one level of instructions, and gives vectors by reference alone: their
// calling convention differs between levels.
#define BRASA_INLINE [[gnu::always_inline]] inline

template <class T, int N>
struct Lanes {
  typedef T Vector __attribute__((vector_size(N * sizeof(T)), aligned(N * sizeof(T))));
  Vector re, im;
};

template <class T, int N>
using Vector = typename Lanes<T, N>::Vector;
// As above, where memory has the numbers' alignment alone.
template <class T, int N>
struct Unaligned {
  typedef T Vector __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
};

// f(0), …, f(N - 1), without a loop: arrays of vectors that are asked for numbers known here alone lie in registers.
template <class F, int... I>
BRASA_INLINE void each_of(F& f, std::integer_sequence<int, I...>) {
  (f(I), ...);
}
template <int N, class F>
BRASA_INLINE void unrolled(F f) {
  each_of(f, std::make_integer_sequence<int, N>());
}

template <int Half, class V, size_t... L>
BRASA_INLINE void swap_blocks(V& a, V& b, std::index_sequence<L...>) {
  constexpr size_t n = sizeof...(L);
  V low = __builtin_shufflevector(a, b, (L & Half ? n + L - Half : L)...);
  b = __builtin_shufflevector(a, b, (L & Half ? n + L : L + Half)...);
  a = low;
}
// Rows become columns: blocks that are not on the diagonal change places, of half the rows first.
template <int Half, class T, int N>
BRASA_INLINE void transpose(Vector<T, N>* rows) {
  unrolled<N>([&](int i) __attribute__((always_inline)) {
    if (!(i & Half)) swap_blocks<Half>(rows[i], rows[i + Half], std::make_index_sequence<N>());
  });
  if constexpr (Half > 1) transpose<Half / 2, T, N>(rows);
}

template <class V, size_t... L>
BRASA_INLINE void take_apart(const V& a, const V& b, V& even, V& odd, std::index_sequence<L...>) {
  even = __builtin_shufflevector(a, b, (2 * L)...);
  odd = __builtin_shufflevector(a, b, (2 * L + 1)...);
}
template <class V, size_t... L>
BRASA_INLINE void put_together(const V& even, const V& odd, V& a, V& b, std::index_sequence<L...>) {
  constexpr size_t n = sizeof...(L);
  a = __builtin_shufflevector(even, odd, (L / 2 + L % 2 * n)...);
  b = __builtin_shufflevector(even, odd, (n / 2 + L / 2 + L % 2 * n)...);
}

// f(k) for the first of each N places that are done together: the last ones overlap others.
template <int N, class F>
BRASA_INLINE void each_block(int64_t length, F f) {
  for (int64_t k = 0; k + N <= length; k += N) f(k);
  if (length % N) f(length - N);
}

}  // namespace
}  // namespace brasa::compiler::fourier
