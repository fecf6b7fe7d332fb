#include "compiler/libraries/fourier/line.h"

#include <cstring>

#include "compiler/libraries/fourier/steps.h"
#include "compiler/libraries/fourier/vectors.h"

namespace brasa::compiler::fourier {
namespace {

// The real and the imaginary parts of a line.
template <class T>
struct Planes {
  T *re, *im;
};

template <class T, int N>
BRASA_INLINE void load(Vector<T, N>& to, const T* from) {
  to = *reinterpret_cast<const typename Unaligned<T, N>::Vector*>(from);
}
template <class T, int N>
BRASA_INLINE void store(T* to, const Vector<T, N>& from) {
  *reinterpret_cast<typename Unaligned<T, N>::Vector*>(to) = from;
}
template <class T>
BRASA_INLINE bool lies_in_pairs(const T* first, const T* second, int64_t step) {
  return first && second == first + 1 && step == 2;
}

template <class T, int N>
BRASA_INLINE void read_part(T* to, const T* from, const typename Group<T>::Side& side, int64_t length) {
  if (!from) {
    std::memset(to, 0, static_cast<size_t>(length) * sizeof(T));
  } else if (side.step == 1) {
    std::memcpy(to, from + side.starts[0], static_cast<size_t>(length) * sizeof(T));
  } else {
    for (int64_t k = 0; k < length; ++k) to[k] = from[side.starts[0] + k * side.step];
  }
}
template <class T, int N>
BRASA_INLINE void read_line(const Planes<T>& to, const typename Group<T>::Side& side, int64_t length) {
  for (bool swapped : {false, true}) {
    const T *first = swapped ? side.im : side.re, *second = swapped ? side.re : side.im;
    if (!lies_in_pairs(first, second, side.step)) continue;
    T *evens = swapped ? to.im : to.re, *odds = swapped ? to.re : to.im;
    each_block<N>(length, [&](int64_t k) __attribute__((always_inline)) {
      Vector<T, N> a, b, even, odd;
      load<T, N>(a, first + side.starts[0] + 2 * k);
      load<T, N>(b, first + side.starts[0] + 2 * k + N);
      take_apart(a, b, even, odd, std::make_index_sequence<N>());
      store<T, N>(evens + k, even);
      store<T, N>(odds + k, odd);
    });
    return;
  }
  read_part<T, N>(to.re, side.re, side, length);
  read_part<T, N>(to.im, side.im, side, length);
}

template <class T, int N>
BRASA_INLINE void write_part(const T* from, T factor, const typename Group<T>::Side& side, T* to, int64_t length) {
  if (!to) return;
  to += side.starts[0];
  if (side.step == 1)
    for (int64_t k = 0; k < length; ++k) to[k] = from[k] * factor;
  else
    for (int64_t k = 0; k < length; ++k) to[k * side.step] = from[k] * factor;
}
template <class T, int N>
BRASA_INLINE void write_line(const Planes<T>& from, const Group<T>& g, const typename Group<T>::Side& side) {
  for (bool swapped : {false, true}) {
    T *first = swapped ? side.im : side.re, *second = swapped ? side.re : side.im;
    if (!lies_in_pairs(first, second, side.step) || g.kept < N) continue;
    const T *evens = swapped ? from.im : from.re, *odds = swapped ? from.re : from.im;
    T even_factor = swapped ? g.im_factor : g.re_factor, odd_factor = swapped ? g.re_factor : g.im_factor;
    each_block<N>(g.kept, [&](int64_t k) __attribute__((always_inline)) {
      Vector<T, N> even, odd, a, b;
      load<T, N>(even, evens + k);
      load<T, N>(odd, odds + k);
      even *= even_factor, odd *= odd_factor;
      put_together(even, odd, a, b, std::make_index_sequence<N>());
      store<T, N>(first + side.starts[0] + 2 * k, a);
      store<T, N>(first + side.starts[0] + 2 * k + N, b);
    });
    return;
  }
  write_part<T, N>(from.re, g.re_factor, side, side.re, g.kept);
  write_part<T, N>(from.im, g.im_factor, side, side.im, g.kept);
}

// Columns beside each other are lanes, and so are rows, as which `between` is turned in registers.
template <class T, int N>
BRASA_INLINE void run_matrix_along(const Stages<T>& s, const Planes<T>& in, const Planes<T>& between, Lanes<T, N>* near,
                                   const Planes<T>& out) {
  int64_t rows = s.columns->length, columns = s.rows->length;
  for (bool later : {false, true}) {
    const Stages<T>& part = later ? *s.rows : *s.columns;
    int64_t count = later ? rows : columns;
    for (int64_t block = 0; block < count; block += N) {
      int64_t first = std::min(block, count - N);
      if (!later) {
        for (int64_t a = 0; a < rows; ++a) {
          load<T, N>(near[a].re, in.re + a * columns + first);
          load<T, N>(near[a].im, in.im + a * columns + first);
        }
      } else {
        each_block<N>(columns, [&](int64_t b) __attribute__((always_inline)) {
          Vector<T, N> re[N], im[N];
          unrolled<N>(
              [&](int i) __attribute__((always_inline)) { load<T, N>(re[i], between.re + (first + i) * columns + b); });
          transpose<N / 2, T, N>(re);
          unrolled<N>([&](int i) __attribute__((always_inline)) { near[b + i].re = re[i]; });
          unrolled<N>(
              [&](int i) __attribute__((always_inline)) { load<T, N>(im[i], between.im + (first + i) * columns + b); });
          transpose<N / 2, T, N>(im);
          unrolled<N>([&](int i) __attribute__((always_inline)) { near[b + i].im = im[i]; });
        });
      }
      const Lanes<T, N>* made = run_stages(part, near, near + part.length);
      for (int64_t k = 0; k < part.length; ++k) {
        if (later) {
          store<T, N>(out.re + k * rows + first, made[k].re);
          store<T, N>(out.im + k * rows + first, made[k].im);
          continue;
        }
        int64_t at = k * columns + first;
        Vector<T, N> a, b, re, im;
        load<T, N>(a, s.turns.data() + 2 * at);
        load<T, N>(b, s.turns.data() + 2 * at + N);
        take_apart(a, b, re, im, std::make_index_sequence<N>());
        store<T, N>(between.re + at, made[k].re * re - made[k].im * im);
        store<T, N>(between.im + at, made[k].re * im + made[k].im * re);
      }
    }
  }
}

template <class T, int N>
BRASA_INLINE void run_line(const Stages<T>& s, const Group<T>& g, T* memory) {
  int64_t n = s.length, aligned = (n + N - 1) / N * N;
  auto address = reinterpret_cast<uintptr_t>(memory);
  T* at = reinterpret_cast<T*>((address + sizeof(Vector<T, N>) - 1) / sizeof(Vector<T, N>) * sizeof(Vector<T, N>));
  Planes<T> x{at, at + aligned}, between{at + 2 * aligned, at + 3 * aligned};
  read_line<T, N>(x, g.in, n);
  run_matrix_along<T, N>(s, x, between, reinterpret_cast<Lanes<T, N>*>(at + 4 * aligned), x);
  write_line<T, N>(x, g, g.out);
}

template <class T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void line_avx512(const Stages<T>& s, const Group<T>& g,
                                                                                T* memory) {
  run_line<T, 64 / sizeof(T)>(s, g, memory);
}
template <class T>
[[gnu::target("avx2,fma")]] void line_avx2(const Stages<T>& s, const Group<T>& g, T* memory) {
  run_line<T, 32 / sizeof(T)>(s, g, memory);
}
template <class T>
void line_plain(const Stages<T>& s, const Group<T>& g, T* memory) {
  run_line<T, 16 / sizeof(T)>(s, g, memory);
}

#undef BRASA_INLINE

}  // namespace

template <class T>
bool fills_vectors(const Stages<T>& s) {
  return s.columns && s.columns->length >= lanes<T>() && s.rows->length >= lanes<T>();
}

template <class T>
int64_t memory_along(const Stages<T>& s) {
  return 4 * (s.length + lanes<T>()) + (2 * s.near() + 1) * lanes<T>();
}

template <class T>
void run_along(const Stages<T>& s, const Group<T>& g, T* memory) {
  int64_t bytes = lanes<T>() * static_cast<int64_t>(sizeof(T));
  (bytes == 64 ? line_avx512<T> : bytes == 32 ? line_avx2<T> : line_plain<T>)(s, g, memory);
}

template bool fills_vectors(const Stages<float>&);
template bool fills_vectors(const Stages<double>&);
template int64_t memory_along(const Stages<float>&);
template int64_t memory_along(const Stages<double>&);
template void run_along(const Stages<float>&, const Group<float>&, float*);
template void run_along(const Stages<double>&, const Group<double>&, double*);

}  // namespace brasa::compiler::fourier
