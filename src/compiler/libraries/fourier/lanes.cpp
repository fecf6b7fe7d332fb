#include "compiler/libraries/fourier/lanes.h"

#include <cmath>
#include <utility>

#include "compiler/schedules/machine.h"
#include "runtime/cpu/features.h"

namespace brasa::compiler::fourier {
namespace {

// Everything below `run` is inlined into a function for one level of instructions, and gives vectors by reference alone: their
// calling convention differs between levels.
#define BRASA_INLINE [[gnu::always_inline]] inline

constexpr double kTau = 6.283185307179586476925;

template <class T, int N>
struct Lanes {
  typedef T Vector __attribute__((vector_size(N * sizeof(T)), aligned(N * sizeof(T))));
  Vector re, im;
};

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
BRASA_INLINE void radix2(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  P sum, difference;
  sum_and_difference(x[0], x[from], sum, difference);
  y[0] = sum;
  times(y[to], difference, w);
}

template <class T, class P>
BRASA_INLINE void radix3(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  constexpr T sine = 0.866025403784438646764;
  P sum, difference, half, minus, plus;
  sum_and_difference(x[from], x[2 * from], sum, difference);
  half.re = x[0].re - sum.re * T(0.5), half.im = x[0].im - sum.im * T(0.5);
  difference.re *= sine, difference.im *= sine;
  turned(half, difference, minus, plus);
  y[0].re = x[0].re + sum.re, y[0].im = x[0].im + sum.im;
  times(y[to], minus, w);
  times(y[2 * to], plus, w + 2);
}

template <class T, class P>
BRASA_INLINE void radix4(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  P even, odd, even_difference, odd_difference, a, b;
  sum_and_difference(x[0], x[2 * from], even, even_difference);
  sum_and_difference(x[from], x[3 * from], odd, odd_difference);
  sum_and_difference(even, odd, a, b);
  y[0] = a;
  times(y[2 * to], b, w + 2);
  turned(even_difference, odd_difference, a, b);
  times(y[to], a, w);
  times(y[3 * to], b, w + 4);
}

template <class T, class P>
BRASA_INLINE void radix5(const P* x, int64_t from, P* y, int64_t to, const T* w) {
  constexpr T cos1 = 0.309016994374947424102, cos2 = -0.809016994374947424102, sin1 = 0.951056516295153572116,
              sin2 = 0.587785252292473129169;
  P sum1, sum2, diff1, diff2, real, imaginary, minus, plus;
  sum_and_difference(x[from], x[4 * from], sum1, diff1);
  sum_and_difference(x[2 * from], x[3 * from], sum2, diff2);
  y[0].re = x[0].re + sum1.re + sum2.re, y[0].im = x[0].im + sum1.im + sum2.im;
  real.re = x[0].re + sum1.re * cos1 + sum2.re * cos2, real.im = x[0].im + sum1.im * cos1 + sum2.im * cos2;
  imaginary.re = diff1.re * sin1 + diff2.re * sin2, imaginary.im = diff1.im * sin1 + diff2.im * sin2;
  turned(real, imaginary, minus, plus);
  times(y[to], minus, w);
  times(y[4 * to], plus, w + 6);
  real.re = x[0].re + sum1.re * cos2 + sum2.re * cos1, real.im = x[0].im + sum1.im * cos2 + sum2.im * cos1;
  imaginary.re = diff1.re * sin2 - diff2.re * sin1, imaginary.im = diff1.im * sin2 - diff2.im * sin1;
  turned(real, imaginary, minus, plus);
  times(y[2 * to], minus, w + 2);
  times(y[3 * to], plus, w + 4);
}

template <class T, class P>
BRASA_INLINE void any_radix(const P* x, int64_t from, P* y, int64_t to, const T* w, const T* roots, int64_t radix) {
  P sum = x[0];
  for (int64_t j = 1; j < radix; ++j) sum.re += x[j * from].re, sum.im += x[j * from].im;
  y[0] = sum;
  for (int64_t k = 1; k < radix; ++k) {
    sum = x[0];
    for (int64_t j = 1, at = k; j < radix; ++j, at = at + k < radix ? at + k : at + k - radix) {
      P term;
      times(term, x[j * from], roots + 2 * at);
      sum.re += term.re, sum.im += term.im;
    }
    times(y[k * to], sum, w + 2 * (k - 1));
  }
}

template <class T, class P>
BRASA_INLINE void run_stage(const typename Stages<T>::Stage& stage, const P* x, P* y) {
  int64_t together = stage.together, from = together * stage.left;
  for (int64_t p = 0; p < stage.left; ++p) {
    const T* w = stage.turns.data() + 2 * (stage.radix - 1) * p;
    const P* a = x + together * p;
    P* b = y + together * stage.radix * p;
    switch (stage.radix) {
      case 2:
        for (int64_t q = 0; q < together; ++q) radix2(a + q, from, b + q, together, w);
        break;
      case 3:
        for (int64_t q = 0; q < together; ++q) radix3(a + q, from, b + q, together, w);
        break;
      case 4:
        for (int64_t q = 0; q < together; ++q) radix4(a + q, from, b + q, together, w);
        break;
      case 5:
        for (int64_t q = 0; q < together; ++q) radix5(a + q, from, b + q, together, w);
        break;
      default:
        for (int64_t q = 0; q < together; ++q)
          any_radix(a + q, from, b + q, together, w, stage.roots.data(), stage.radix);
    }
  }
}

template <class T, int N>
using Vector = typename Lanes<T, N>::Vector;
// As above, where memory has the numbers' alignment alone.
template <class T, int N>
struct Unaligned {
  typedef T Vector __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
};

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
  for (int i = 0; i < N; ++i)
    if (!(i & Half)) swap_blocks<Half>(rows[i], rows[i + Half], std::make_index_sequence<N>());
  if constexpr (Half > 1) transpose<Half / 2, T, N>(rows);
}

template <class S>
bool beside_each_other(const S& side, int count) {
  for (int i = 1; i < count; ++i)
    if (side.starts[i] != side.starts[0] + i) return false;
  return true;
}

// A part (real or imaginary) of all lines into lanes.
template <class T, int N>
BRASA_INLINE void load(const T* x, const typename Group<T>::Side& side, int count, int64_t length,
                       Vector<T, N> Lanes<T, N>::* part, Lanes<T, N>* to) {
  using Loaded = typename Unaligned<T, N>::Vector;
  int64_t k = 0;
  if (count == N && beside_each_other(side, count)) {
    for (const T* at = x + side.starts[0]; k < length; ++k, at += side.step)
      to[k].*part = *reinterpret_cast<const Loaded*>(at);
  } else if (count == N && side.step == 1) {
    for (; k + N <= length; k += N) {
      Vector<T, N> rows[N];
      for (int i = 0; i < N; ++i) rows[i] = *reinterpret_cast<const Loaded*>(x + side.starts[i] + k);
      transpose<N / 2, T, N>(rows);
      for (int i = 0; i < N; ++i) to[k + i].*part = rows[i];
    }
  }
  for (; k < length; ++k) {
    Vector<T, N> v{};
    for (int i = 0; i < count; ++i) v[i] = x[side.starts[i] + k * side.step];
    to[k].*part = v;
  }
}

template <class T, int N>
BRASA_INLINE void store(const Lanes<T, N>* from, Vector<T, N> Lanes<T, N>::* part, int64_t length,
                        const typename Group<T>::Side& side, int count, T* x) {
  using Stored = typename Unaligned<T, N>::Vector;
  int64_t k = 0;
  if (count == N && beside_each_other(side, count)) {
    for (T* at = x + side.starts[0]; k < length; ++k, at += side.step) *reinterpret_cast<Stored*>(at) = from[k].*part;
  } else if (count == N && side.step == 1) {
    for (; k + N <= length; k += N) {
      Vector<T, N> rows[N];
      for (int i = 0; i < N; ++i) rows[i] = from[k + i].*part;
      transpose<N / 2, T, N>(rows);
      for (int i = 0; i < N; ++i) *reinterpret_cast<Stored*>(x + side.starts[i] + k) = rows[i];
    }
  }
  for (; k < length; ++k) {
    Vector<T, N> v = from[k].*part;
    for (int i = 0; i < count; ++i) x[side.starts[i] + k * side.step] = v[i];
  }
}

template <class T, int N>
BRASA_INLINE void turn(const Group<T>& g, int64_t length, Lanes<T, N>* x) {
  for (int64_t k = 0; k < length; ++k) {
    Vector<T, N> re{}, im{};
    const T *turns_re = g.turns_re + k * g.turns_step, *turns_im = g.turns_im + k * g.turns_step;
    if (g.count == N) {
      re = *reinterpret_cast<const typename Unaligned<T, N>::Vector*>(turns_re);
      im = *reinterpret_cast<const typename Unaligned<T, N>::Vector*>(turns_im);
    } else {
      for (int i = 0; i < g.count; ++i) re[i] = turns_re[i], im[i] = turns_im[i];
    }
    Vector<T, N> turned = x[k].re * re - x[k].im * im;
    x[k].im = x[k].re * im + x[k].im * re;
    x[k].re = turned;
  }
}

template <class T, int N>
BRASA_INLINE void run_on(const Stages<T>& stages, const Group<T>& g, T* memory) {
  using P = Lanes<T, N>;
  auto address = reinterpret_cast<uintptr_t>(memory);
  P* x = reinterpret_cast<P*>((address + sizeof(Vector<T, N>) - 1) / sizeof(Vector<T, N>) * sizeof(Vector<T, N>));
  P* y = x + stages.length;
  load<T, N>(g.in.re, g.in, g.count, stages.length, &P::re, x);
  load<T, N>(g.in.im, g.in, g.count, stages.length, &P::im, x);
  for (const auto& stage : stages.stages) {
    run_stage<T>(stage, x, y);
    std::swap(x, y);
  }
  if (g.turns_re) turn<T, N>(g, stages.length, x);
  store<T, N>(x, &P::re, stages.length, g.out, g.count, g.out.re);
  store<T, N>(x, &P::im, stages.length, g.out, g.count, g.out.im);
}

template <class T>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]] void run_avx512(const Stages<T>& s, const Group<T>& g,
                                                                               T* memory) {
  run_on<T, 64 / sizeof(T)>(s, g, memory);
}
template <class T>
[[gnu::target("avx2,fma")]] void run_avx2(const Stages<T>& s, const Group<T>& g, T* memory) {
  run_on<T, 32 / sizeof(T)>(s, g, memory);
}
template <class T>
void run_plain(const Stages<T>& s, const Group<T>& g, T* memory) {
  run_on<T, 16 / sizeof(T)>(s, g, memory);
}

#undef BRASA_INLINE

// Bytes of a vector.
int width() {
  static const int bytes = machine_of(runtime::cpu::host_target(), 1).vector_bytes;
  return bytes;
}

int64_t next_radix(int64_t n) {
  for (int64_t p : {4, 2, 3, 5})
    if (n % p == 0) return p;
  int64_t p = 7;
  while (n % p) p += 2;
  return p;
}

}  // namespace

template <class T>
Stages<T>::Stages(int64_t length) : length(length) {
  auto root = [](int64_t k, int64_t n) {
    double angle = -kTau * static_cast<double>(k % n) / static_cast<double>(n);
    return std::pair(static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle)));
  };
  int64_t together = 1;
  for (int64_t n = length; n > 1;) {
    int64_t radix = next_radix(n), left = n / radix;
    Stage stage{radix, left, together, {}, {}};
    for (int64_t p = 0; p < left; ++p)
      for (int64_t k = 1; k < radix; ++k) {
        auto [re, im] = root(p * k, n);
        stage.turns.insert(stage.turns.end(), {re, im});
      }
    for (int64_t k = 0; radix > 5 && k < radix; ++k) {
      auto [re, im] = root(k, radix);
      stage.roots.insert(stage.roots.end(), {re, im});
    }
    stages.push_back(std::move(stage));
    together *= radix;
    n = left;
  }
}

template <class T>
int lanes() {
  return width() / static_cast<int>(sizeof(T));
}

template <class T>
int64_t memory_for(int64_t length) {
  return 4 * length * lanes<T>() + width() / static_cast<int64_t>(sizeof(T));
}

template <class T>
void run(const Stages<T>& stages, const Group<T>& group, T* memory) {
  (width() == 64 ? run_avx512<T> : width() == 32 ? run_avx2<T> : run_plain<T>)(stages, group, memory);
}

template struct Stages<float>;
template struct Stages<double>;
template int lanes<float>();
template int lanes<double>();
template int64_t memory_for<float>(int64_t);
template int64_t memory_for<double>(int64_t);
template void run(const Stages<float>&, const Group<float>&, float*);
template void run(const Stages<double>&, const Group<double>&, double*);

}  // namespace brasa::compiler::fourier
