#pragma once

#include <utility>

#include "compiler/libraries/fourier/lanes.h"
#include "compiler/libraries/fourier/vectors.h"

// The steps of a transform on vectors, for the files that are compiled for several levels of instructions.
namespace brasa::compiler::fourier {
namespace {

template <class P>
BRASA_INLINE void sum_and_difference(const P& a, const P& b, P& sum, P& difference) {
  sum.re = a.re + b.re, sum.im = a.im + b.im;
  difference.re = a.re - b.re, difference.im = a.im - b.im;
}
// a - ib and a + ib.
template <class P>
BRASA_INLINE void turned(const P& a, const P& b, P& minus, P& plus) {
  minus.re = a.re + b.im, minus.im = a.im - b.re;
  plus.re = a.re - b.im, plus.im = a.im + b.re;
}
template <class T, class P>
BRASA_INLINE void times(P& to, const P& a, const T* w) {
  to.re = a.re * w[0] - a.im * w[1];
  to.im = a.re * w[1] + a.im * w[0];
}

template <class T, class P>
BRASA_INLINE void scale(P& to, const P& a, T by) {
  to.re = a.re * by, to.im = a.im * by;
}
template <class P>
BRASA_INLINE void add(P& to, const P& a) {
  to.re += a.re, to.im += a.im;
}
template <class T, class P>
BRASA_INLINE void add_scaled(P& to, const P& a, T by) {
  to.re += a.re * by, to.im += a.im * by;
}

// A result of a step with its factor, which is 1 for the first of the transforms that are left.
template <bool Turns, class T, class P>
BRASA_INLINE void put(P& to, const P& a, const T* w) {
  if constexpr (Turns)
    times(to, a, w);
  else
    to = a;
}

template <bool Turns, class T, class P>
BRASA_INLINE void radix2(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  P sum, difference;
  sum_and_difference(x[0], x[from], sum, difference);
  y[0] = sum;
  put<Turns>(y[to], difference, w);
}

template <bool Turns, class T, class P>
BRASA_INLINE void radix3(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  constexpr T sine = 0.866025403784438646764;
  P sum, difference, half, minus, plus;
  sum_and_difference(x[from], x[2 * from], sum, difference);
  half.re = x[0].re - sum.re * T(0.5), half.im = x[0].im - sum.im * T(0.5);
  scale(difference, difference, sine);
  turned(half, difference, minus, plus);
  y[0].re = x[0].re + sum.re, y[0].im = x[0].im + sum.im;
  put<Turns>(y[to], minus, w);
  put<Turns>(y[2 * to], plus, w + 2);
}

template <bool Turns, class T, class P>
BRASA_INLINE void radix4(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  P even, odd, even_difference, odd_difference, a, b;
  sum_and_difference(x[0], x[2 * from], even, even_difference);
  sum_and_difference(x[from], x[3 * from], odd, odd_difference);
  sum_and_difference(even, odd, a, b);
  y[0] = a;
  put<Turns>(y[2 * to], b, w + 2);
  turned(even_difference, odd_difference, a, b);
  put<Turns>(y[to], a, w);
  put<Turns>(y[3 * to], b, w + 4);
}

// Of an odd radix: results k and -k are made of the same sums and differences of elements j and -j, with real factors. `roots` are
// those of unity. `Radix` of 0: a number that is known here alone, and two pairs of results at a time, which read the same sums.
template <int Radix, bool Turns, class T, class P>
BRASA_INLINE void odd_radix(const P* x, int64_t from, P* y, int64_t to, const T* w, const T* roots, int64_t number) {
  constexpr int kMost = Radix ? Radix / 2 : kLargestRadix / 2, kPairs = Radix ? 1 : 2;
  const int64_t radix = Radix ? Radix : number, half = radix / 2;
  P sums[kMost], differences[kMost], all = x[0];
  for (int64_t j = 1; j <= half; ++j) {
    sum_and_difference(x[j * from], x[(radix - j) * from], sums[j - 1], differences[j - 1]);
    add(all, sums[j - 1]);
  }
  y[0] = all;
  for (int64_t first = 1; first <= half; first += kPairs) {
    P even[kPairs], odd[kPairs];
    int64_t at[kPairs], k[kPairs];
    for (int i = 0; i < kPairs; ++i) {
      at[i] = k[i] = std::min(first + i, half);
      even[i] = x[0];
      odd[i] = P{};
    }
    for (int64_t j = 1; j <= half; ++j)
      for (int i = 0; i < kPairs; ++i) {
        add_scaled(even[i], sums[j - 1], roots[2 * at[i]]);
        add_scaled(odd[i], differences[j - 1], -roots[2 * at[i] + 1]);
        at[i] = at[i] + k[i] < radix ? at[i] + k[i] : at[i] + k[i] - radix;
      }
    for (int i = 0; i < kPairs; ++i) {
      P minus, plus;
      turned(even[i], odd[i], minus, plus);
      put<Turns>(y[k[i] * to], minus, w + 2 * (k[i] - 1));
      put<Turns>(y[(radix - k[i]) * to], plus, w + 2 * (radix - k[i] - 1));
    }
  }
}

// As convolutions, which are functions of their own: their transforms may have such steps in turn. `w` is null for the first of the transforms
// that are left.
template <class T, class P>
BRASA_INLINE void run_convolution(const typename Stages<T>::Stage& stage, const P* x, int64_t from, P* y, int64_t to,
                                  const T* w);

template <bool Turns, class T, class P>
BRASA_INLINE void run_step(const typename Stages<T>::Stage& stage, const P* a, P* b, const T* w) {
  int64_t together = stage.together, from = together * stage.left;
  const T* roots = stage.roots.data();
  auto each = [&](auto step) __attribute__((always_inline)) {
    for (int64_t q = 0; q < together; ++q) step(a + q, b + q);
  };
  switch (stage.radix) {
    case 2:
      return each([&](const P* x, P* y) __attribute__((always_inline)) { radix2<Turns>(x, from, y, together, w); });
    case 3:
      return each([&](const P* x, P* y) __attribute__((always_inline)) { radix3<Turns>(x, from, y, together, w); });
    case 4:
      return each([&](const P* x, P* y) __attribute__((always_inline)) { radix4<Turns>(x, from, y, together, w); });
    case 5:
      return each([&](const P* x, P* y)
                      __attribute__((always_inline)) { odd_radix<5, Turns>(x, from, y, together, w, roots, 5); });
    case 7:
      return each([&](const P* x, P* y)
                      __attribute__((always_inline)) { odd_radix<7, Turns>(x, from, y, together, w, roots, 7); });
    default:
      if (stage.convolution)
        return each([&](const P* x, P* y) __attribute__((always_inline)) {
          run_convolution<T, P>(stage, x, from, y, together, Turns ? w : nullptr);
        });
      return each([&](const P* x, P* y) __attribute__((always_inline)) {
        odd_radix<0, Turns>(x, from, y, together, w, roots, stage.radix);
      });
  }
}

template <class T, class P>
BRASA_INLINE void run_stage(const typename Stages<T>::Stage& stage, const P* x, P* y) {
  run_step<false, T>(stage, x, y, stage.turns.data());
  for (int64_t p = 1; p < stage.left; ++p)
    run_step<true, T>(stage, x + stage.together * p, y + stage.together * stage.radix * p,
                      stage.turns.data() + 2 * (stage.radix - 1) * p);
}

// Where the results are then: in one of the two.
template <class T, class P>
BRASA_INLINE P* run_stages(const Stages<T>& s, P* x, P* y) {
  for (const auto& stage : s.stages) {
    run_stage<T>(stage, x, y);
    std::swap(x, y);
  }
  return x;
}

template <class T, class P>
BRASA_INLINE void convolved(const typename Stages<T>::Stage& stage, const P* x, int64_t from, P* y, int64_t to,
                            const T* w) {
  const int64_t n = stage.radix - 1;
  P memory[2 * kLargestRadix], *at = memory, *other = memory + n;
  for (int64_t j = 0; j < n; ++j) at[j] = x[stage.powers[j] * from];
  const P first = x[0];
  // Forward; and back, with real and imaginary parts swapped.
  for (bool back : {false, true}) {
    P* made = run_stages(*stage.convolution, at, other);
    if (made != at) std::swap(at, other);
    if (back) break;
    y[0] = first;
    add(y[0], made[0]);
    for (int64_t k = 0; k < n; ++k) {
      P z;
      times(z, made[k], &stage.kernel[2 * k]);
      made[k].re = z.im, made[k].im = z.re;
    }
    made[0].re += first.im, made[0].im += first.re;
  }
  for (int64_t j = 0; j < n; ++j) {
    int64_t k = stage.powers[j ? n - j : 0];
    P z;
    z.re = at[j].im, z.im = at[j].re;
    if (w)
      times(y[k * to], z, w + 2 * (k - 1));
    else
      y[k * to] = z;
  }
}

template <class T>
[[gnu::noinline, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void convolved_avx512(
    const typename Stages<T>::Stage& stage, const Lanes<T, 64 / sizeof(T)>* x, int64_t from,
    Lanes<T, 64 / sizeof(T)>* y, int64_t to, const T* w) {
  convolved<T>(stage, x, from, y, to, w);
}
template <class T>
[[gnu::noinline, gnu::target("avx2,fma")]] void convolved_avx2(const typename Stages<T>::Stage& stage,
                                                               const Lanes<T, 32 / sizeof(T)>* x, int64_t from,
                                                               Lanes<T, 32 / sizeof(T)>* y, int64_t to, const T* w) {
  convolved<T>(stage, x, from, y, to, w);
}
template <class T>
[[gnu::noinline]] void convolved_plain(const typename Stages<T>::Stage& stage, const Lanes<T, 16 / sizeof(T)>* x,
                                       int64_t from, Lanes<T, 16 / sizeof(T)>* y, int64_t to, const T* w) {
  convolved<T>(stage, x, from, y, to, w);
}
template <class T, class P>
BRASA_INLINE void run_convolution(const typename Stages<T>::Stage& stage, const P* x, int64_t from, P* y, int64_t to,
                                  const T* w) {
  if constexpr (sizeof(P) == 128)
    convolved_avx512<T>(stage, x, from, y, to, w);
  else if constexpr (sizeof(P) == 64)
    convolved_avx2<T>(stage, x, from, y, to, w);
  else
    convolved_plain<T>(stage, x, from, y, to, w);
}

// Columns, each number's turn, and rows; `near` has room for one of them twice.
template <class T, class P>
BRASA_INLINE P* run_matrix(const Stages<T>& s, P* x, P* y, P* near) {
  if (!s.columns) return run_stages(s, x, y);
  int64_t rows = s.columns->length, columns = s.rows->length;
  for (int64_t b = 0; b < columns; ++b) {
    for (int64_t a = 0; a < rows; ++a) near[a] = x[a * columns + b];
    const P* column = run_stages(*s.columns, near, near + rows);
    for (int64_t k = 0; k < rows; ++k) times(y[k * columns + b], column[k], &s.turns[2 * (k * columns + b)]);
  }
  for (int64_t a = 0; a < rows; ++a) {
    const P* row = run_stages(*s.rows, y + a * columns, near);
    for (int64_t k = 0; k < columns; ++k) x[k * rows + a] = row[k];
  }
  return x;
}

}  // namespace
}  // namespace brasa::compiler::fourier
