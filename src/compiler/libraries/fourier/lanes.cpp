#include "compiler/libraries/fourier/lanes.h"

#include <cmath>
#include <complex>
#include <cstring>
#include <utility>

#include "compiler/libraries/fourier/steps.h"
#include "compiler/schedules/machine.h"
#include "runtime/cpu/features.h"
#include "support/lazy.h"

namespace brasa::compiler::fourier {
namespace {

constexpr double kTau = 6.283185307179586476925;

// Numbers of a side along its lines, `Parts` beside each other: of planes one, of complex numbers two.
template <int Parts, class S>
BRASA_INLINE bool beside_each_other(const S& side) {
  for (int i = 1; i < side.count; ++i)
    if (side.starts[i] != side.starts[0] + Parts * i) return false;
  return true;
}

// `size` numbers, at most `Most`, by copies of the largest power of two that is no more, the second up to the end.
template <int Most, int Size = 1, class T>
BRASA_INLINE void copy_each(const T* from, int64_t from_step, T* to, int64_t to_step, int64_t size, int64_t length) {
  if constexpr (2 * Size <= Most)
    if (size >= 2 * Size) return copy_each<Most, 2 * Size>(from, from_step, to, to_step, size, length);
  int64_t last = size - Size;
  for (int64_t k = 0; k < length; ++k, from += from_step, to += to_step) {
    std::memcpy(to, from, Size * sizeof(T));
    if (last) std::memcpy(to + last, from + last, Size * sizeof(T));
  }
}
// Between memory and lanes: lines that lie beside each other are copied together. `Parts` as above.
template <int Parts, bool Out, class T, int N>
BRASA_INLINE void copy_runs(T* x, const typename Group<T>::Side& side, int64_t length, T* lanes) {
  constexpr int64_t kLane = sizeof(Lanes<T, N>) / sizeof(T);
  for (int i = 0, run = 1; i < side.count; i += run, run = 1) {
    while (i + run < side.count && side.starts[i + run] == side.starts[i] + Parts * run) ++run;
    T *line = x + side.starts[i], *lane = lanes + Parts * i;
    if (Out)
      copy_each<Parts * N>(lane, kLane, line, side.step, Parts * run, length);
    else
      copy_each<Parts * N>(line, side.step, lane, kLane, Parts * run, length);
  }
}

// Planes: one part of all lines into lanes, or out of them.
template <class T, int N>
BRASA_INLINE void load(const T* x, const typename Group<T>::Side& side, int64_t length,
                       Vector<T, N> Lanes<T, N>::* part, Lanes<T, N>* to) {
  using Loaded = typename Unaligned<T, N>::Vector;
  if (!x) {
    for (int64_t k = 0; k < length; ++k) to[k].*part = Vector<T, N>{};
  } else if (side.count == N && beside_each_other<1>(side)) {
    x += side.starts[0];
    for (int64_t k = 0; k < length; ++k) to[k].*part = *reinterpret_cast<const Loaded*>(x + k * side.step);
  } else if (side.step == 1 && length >= N) {
    each_block<N>(length, [&](int64_t k) __attribute__((always_inline)) {
      Vector<T, N> rows[N];
      unrolled<N>([&](int i) __attribute__((always_inline)) {
        rows[i] =
            i < side.count ? Vector<T, N>(*reinterpret_cast<const Loaded*>(x + side.starts[i] + k)) : Vector<T, N>{};
      });
      transpose<N / 2, T, N>(rows);
      unrolled<N>([&](int i) __attribute__((always_inline)) { to[k + i].*part = rows[i]; });
    });
  } else {
    for (int64_t k = 0; k < length && side.count < N; ++k) to[k].*part = Vector<T, N>{};
    copy_runs<1, false, T, N>(const_cast<T*>(x), side, length, reinterpret_cast<T*>(&(to[0].*part)));
  }
}
template <class T, int N>
BRASA_INLINE void store(Lanes<T, N>* from, Vector<T, N> Lanes<T, N>::* part, int64_t length,
                        const typename Group<T>::Side& side, T* x) {
  using Stored = typename Unaligned<T, N>::Vector;
  if (!x) return;
  if (side.count == N && beside_each_other<1>(side)) {
    x += side.starts[0];
    for (int64_t k = 0; k < length; ++k) *reinterpret_cast<Stored*>(x + k * side.step) = from[k].*part;
  } else if (side.step == 1 && length >= N) {
    each_block<N>(length, [&](int64_t k) __attribute__((always_inline)) {
      Vector<T, N> rows[N];
      unrolled<N>([&](int i) __attribute__((always_inline)) { rows[i] = from[k + i].*part; });
      transpose<N / 2, T, N>(rows);
      unrolled<N>([&](int i) __attribute__((always_inline)) {
        if (i < side.count) *reinterpret_cast<Stored*>(x + side.starts[i] + k) = rows[i];
      });
    });
  } else {
    copy_runs<1, true, T, N>(x, side, length, reinterpret_cast<T*>(&(from[0].*part)));
  }
}

// Complex numbers: `first` is the part that lies first.
template <class T, int N>
BRASA_INLINE void load_pairs(const T* x, const typename Group<T>::Side& side, int64_t length,
                             Vector<T, N> Lanes<T, N>::* first, Vector<T, N> Lanes<T, N>::* second, Lanes<T, N>* to) {
  using Loaded = typename Unaligned<T, N>::Vector;
  constexpr auto lanes = std::make_index_sequence<N>();
  if (side.count == N && beside_each_other<2>(side)) {
    x += side.starts[0];
    for (int64_t k = 0; k < length; ++k) {
      const auto* at = reinterpret_cast<const Loaded*>(x + k * side.step);
      Vector<T, N> a = at[0], b = at[1];
      take_apart(a, b, to[k].*first, to[k].*second, lanes);
    }
    return;
  }
  if (side.step != 2 || length < N / 2) {
    for (int64_t k = 0; k < length && side.count < N; ++k) to[k] = Lanes<T, N>{};
    copy_runs<2, false, T, N>(const_cast<T*>(x), side, length, reinterpret_cast<T*>(to));
    for (int64_t k = 0; k < length; ++k) {
      Vector<T, N> a = to[k].re, b = to[k].im;
      take_apart(a, b, to[k].*first, to[k].*second, lanes);
    }
    return;
  }
  // Both parts of half as many elements as there are lanes are the rows of a square.
  each_block<N / 2>(length, [&](int64_t k) __attribute__((always_inline)) {
    Vector<T, N> rows[N];
    unrolled<N>([&](int i) __attribute__((always_inline)) {
      rows[i] =
          i < side.count ? Vector<T, N>(*reinterpret_cast<const Loaded*>(x + side.starts[i] + 2 * k)) : Vector<T, N>{};
    });
    transpose<N / 2, T, N>(rows);
    unrolled<N>([&](int i) __attribute__((always_inline)) { to[k + i / 2].*(i % 2 ? second : first) = rows[i]; });
  });
}
template <class T, int N>
BRASA_INLINE void store_pairs(Lanes<T, N>* from, Vector<T, N> Lanes<T, N>::* first, Vector<T, N> Lanes<T, N>::* second,
                              int64_t length, const typename Group<T>::Side& side, T* x) {
  using Stored = typename Unaligned<T, N>::Vector;
  constexpr auto lanes = std::make_index_sequence<N>();
  if (side.count == N && beside_each_other<2>(side)) {
    x += side.starts[0];
    for (int64_t k = 0; k < length; ++k) {
      auto* at = reinterpret_cast<Stored*>(x + k * side.step);
      Vector<T, N> a, b;
      put_together(from[k].*first, from[k].*second, a, b, lanes);
      at[0] = a, at[1] = b;
    }
    return;
  }
  if (side.step != 2 || length < N / 2) {
    for (int64_t k = 0; k < length; ++k) {
      Vector<T, N> a, b;
      put_together(from[k].*first, from[k].*second, a, b, lanes);
      from[k].re = a, from[k].im = b;
    }
    return copy_runs<2, true, T, N>(x, side, length, reinterpret_cast<T*>(from));
  }
  each_block<N / 2>(length, [&](int64_t k) __attribute__((always_inline)) {
    Vector<T, N> rows[N];
    unrolled<N>([&](int i) __attribute__((always_inline)) { rows[i] = from[k + i / 2].*(i % 2 ? second : first); });
    transpose<N / 2, T, N>(rows);
    unrolled<N>([&](int i) __attribute__((always_inline)) {
      if (i < side.count) *reinterpret_cast<Stored*>(x + side.starts[i] + 2 * k) = rows[i];
    });
  });
}

// The parts of a side, the one that lies first in front where they are complex numbers.
template <class T, int N>
struct Parts {
  using P = Lanes<T, N>;
  T* at[2];
  Vector<T, N> P::* part[2];
  bool pairs;
  BRASA_INLINE explicit Parts(const typename Group<T>::Side& side) {
    bool swapped = side.im && side.re == side.im + 1;
    at[0] = swapped ? side.im : side.re, at[1] = swapped ? side.re : side.im;
    part[0] = swapped ? &P::im : &P::re, part[1] = swapped ? &P::re : &P::im;
    pairs = at[0] && at[1] == at[0] + 1;
  }
};
template <class T, int N>
BRASA_INLINE void load_side(const typename Group<T>::Side& side, int64_t length, Lanes<T, N>* to) {
  Parts<T, N> p(side);
  if (p.pairs) return load_pairs<T, N>(p.at[0], side, length, p.part[0], p.part[1], to);
  for (int i = 0; i < 2; ++i) load<T, N>(p.at[i], side, length, p.part[i], to);
}
// The lanes are lost.
template <class T, int N>
BRASA_INLINE void store_side(Lanes<T, N>* from, int64_t length, const typename Group<T>::Side& side) {
  Parts<T, N> p(side);
  if (p.pairs) return store_pairs<T, N>(from, p.part[0], p.part[1], length, side, p.at[0]);
  for (int i = 0; i < 2; ++i) store<T, N>(from, p.part[i], length, side, p.at[i]);
}

template <class T, int N>
BRASA_INLINE void turn(const Group<T>& g, int64_t length, Lanes<T, N>* x) {
  for (int64_t k = 0; k < length; ++k) {
    Vector<T, N> re{}, im{};
    const T *turns_re = g.turns_re + k * g.turns_step, *turns_im = g.turns_im + k * g.turns_step;
    if (g.in.count == N) {
      re = *reinterpret_cast<const typename Unaligned<T, N>::Vector*>(turns_re);
      im = *reinterpret_cast<const typename Unaligned<T, N>::Vector*>(turns_im);
    } else {
      for (int i = 0; i < g.in.count; ++i) re[i] = turns_re[i], im[i] = turns_im[i];
    }
    Vector<T, N> turned = x[k].re * re - x[k].im * im;
    x[k].im = x[k].re * im + x[k].im * re;
    x[k].re = turned;
  }
}

// Two real lines went in as one complex one: the sums and differences of results k and -k are theirs.
template <class T, class P>
BRASA_INLINE void separate(const P* x, int64_t length, int64_t kept, P* first, P* second) {
  for (int64_t k = 0; k < kept; ++k) {
    const P &a = x[k], &b = x[k ? length - k : 0];
    first[k].re = (a.re + b.re) * T(0.5), first[k].im = (a.im - b.im) * T(0.5);
    second[k].re = (a.im + b.im) * T(0.5), second[k].im = (b.re - a.re) * T(0.5);
  }
}
// What gives two real lines as one complex one: the parts of both that are their own conjugates at -k. `sign` of -1: of the lines'
// conjugates.
template <class T, class P>
BRASA_INLINE void join(const P* first, const P* second, int64_t length, T sign, P* x) {
  for (int64_t k = 0; k < length; ++k) {
    int64_t m = k ? length - k : 0;
    const P &a = first[k], &b = first[m], &c = second[k], &d = second[m];
    x[k].re = (a.re + b.re + (d.im - c.im) * sign) * T(0.5);
    x[k].im = (c.re + d.re + (a.im - b.im) * sign) * T(0.5);
  }
}

// As `join` of lines' conjugates, of which the first half is given: the rest is that half's conjugates, and the numbers in the middle are
// real.
template <class T, class P>
BRASA_INLINE void join_halves(const P* first, const P* second, int64_t length, P* x) {
  for (int64_t k = 0; k <= length / 2; ++k) {
    int64_t m = k ? length - k : 0;
    const P &a = first[k], &b = second[k];
    if (k == m) {
      x[k].re = a.re, x[k].im = b.re;
      continue;
    }
    x[k].re = a.re + b.im, x[k].im = b.re - a.im;
    x[m].re = a.re - b.im, x[m].im = b.re + a.im;
  }
}

template <class T, int N>
BRASA_INLINE void run_on(const Stages<T>& stages, const Group<T>& g, T* memory) {
  using P = Lanes<T, N>;
  auto address = reinterpret_cast<uintptr_t>(memory);
  P* x = reinterpret_cast<P*>((address + sizeof(Vector<T, N>) - 1) / sizeof(Vector<T, N>) * sizeof(Vector<T, N>));
  int64_t n = stages.length, kept = g.kept;
  P *y = x + n, *near = y + n, *lines[] = {near + stages.near(), near + stages.near() + n};
  const typename Group<T>::Side *in[] = {&g.in, &g.other_in}, *out[] = {&g.out, &g.other_out};
  constexpr Vector<T, N> P::* kParts[] = {&P::re, &P::im};
  bool to_reals = g.form == Form::ToReals || g.form == Form::FromHalf;
  // Each stands once, in a loop, because it is inlined wherever it stands.
  if (g.form == Form::FromReals) {
    for (int i = 0; i < 2; ++i) load<T, N>(in[i]->re, *in[i], n, kParts[i], x);
  } else {
    bool half = g.form == Form::FromHalf;
    for (int i = 0; i <= to_reals; ++i) load_side<T, N>(*in[i], half ? n / 2 + 1 : n, to_reals ? lines[i] : x);
    if (half)
      join_halves<T>(lines[0], lines[1], n, x);
    else if (to_reals)
      join<T>(lines[0], lines[1], n, g.conjugate ? T(-1) : T(1), x);
  }
  x = run_matrix(stages, x, y, near);
  if (g.turns_re) turn<T, N>(g, n, x);
  bool separated = g.form == Form::FromReals;
  if (separated) separate<T>(x, n, kept, lines[0], lines[1]);
  for (int i = 0; i <= separated; ++i) {
    P* results = separated ? lines[i] : x;
    if (g.re_factor != 1 || g.im_factor != 1)
      for (int64_t k = 0; k < kept; ++k) results[k].re *= g.re_factor, results[k].im *= g.im_factor;
    if (!to_reals) store_side<T, N>(results, kept, *out[i]);
  }
  if (to_reals)
    for (int i = 0; i < 2; ++i) store<T, N>(x, kParts[i], kept, *out[i], out[i]->re);
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
  static constinit Lazy<int> bytes([] { return machine_of(runtime::cpu::host_target(), 1).vector_bytes; });
  return *bytes;
}

int64_t next_radix(int64_t n) {
  for (int64_t p : {4, 2, 3, 5})
    if (n % p == 0) return p;
  int64_t p = 7;
  while (n % p) p += 2;
  return p;
}

// Whose powers are all numbers but 0 modulo a prime.
int64_t generator(int64_t prime) {
  for (int64_t g = 2;; ++g) {
    int64_t order = 1;
    for (int64_t at = g; at != 1; at = at * g % prime) ++order;
    if (order == prime - 1) return g;
  }
}
// A step of radix p takes as long as p for each number, by which a convolution's two transforms are compared with it.
bool pays_convolution(int64_t prime) {
  constexpr int64_t kOwn = 8;
  int64_t work = kOwn;
  for (int64_t n = prime - 1; n > 1; n /= next_radix(n)) work += 2 * next_radix(n);
  return work < prime;
}

template <class T>
void make_convolution(typename Stages<T>::Stage& stage) {
  int64_t p = stage.radix, n = p - 1, g = generator(p);
  for (int64_t j = 0, at = 1; j < n; ++j, at = at * g % p) stage.powers.push_back(at);
  stage.convolution = std::make_unique<Stages<T>>(n, true);
  for (int64_t k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (int64_t j = 0; j < n; ++j)
      sum += std::polar(1.0, -kTau * (static_cast<double>(stage.powers[j ? n - j : 0]) / static_cast<double>(p) +
                                      static_cast<double>(j * k % n) / static_cast<double>(n)));
    sum /= static_cast<double>(n);
    stage.kernel.insert(stage.kernel.end(), {static_cast<T>(sum.real()), static_cast<T>(sum.imag())});
  }
}

}  // namespace

int64_t middle_divisor(int64_t n) {
  auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % d) --d;
  return d;
}

template <class T>
Stages<T>::Stages(int64_t length, bool at_once) : length(length) {
  auto root = [](int64_t k, int64_t n) {
    double angle = -kTau * static_cast<double>(k % n) / static_cast<double>(n);
    return std::pair(static_cast<T>(std::cos(angle)), static_cast<T>(std::sin(angle)));
  };
  auto add = [&](std::vector<T>& to, int64_t k, int64_t n) {
    auto [re, im] = root(k, n);
    to.insert(to.end(), {re, im});
  };
  if (int64_t across = middle_divisor(length); length > kNear && across > 1 && !at_once) {
    columns = std::make_unique<Stages>(across);
    rows = std::make_unique<Stages>(length / across);
    for (int64_t k = 0; k < across; ++k)
      for (int64_t b = 0; b < rows->length; ++b) add(turns, k * b, length);
    if (!columns->columns && !rows->columns) return;
    columns.reset(), rows.reset(), turns.clear();  // a large prime: one level will do
  }
  int64_t together = 1;
  for (int64_t n = length; n > 1;) {
    int64_t radix = next_radix(n), left = n / radix;
    Stage stage{radix, left, together, {}, {}, {}, {}, {}};
    for (int64_t p = 0; p < left; ++p)
      for (int64_t k = 1; k < radix; ++k) add(stage.turns, p * k, n);
    for (int64_t k = 0; radix >= 5 && k < radix; ++k) add(stage.roots, k, radix);
    if (pays_convolution(radix)) make_convolution<T>(stage);
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
int64_t memory_for(const Stages<T>& s) {
  return 2 * (4 * s.length + s.near()) * lanes<T>() + width() / static_cast<int64_t>(sizeof(T));
}

template <class T>
void run(const Stages<T>& stages, const Group<T>& group, T* memory) {
  (width() == 64 ? run_avx512<T> : width() == 32 ? run_avx2<T> : run_plain<T>)(stages, group, memory);
}

template struct Stages<float>;
template struct Stages<double>;
template int lanes<float>();
template int lanes<double>();
template int64_t memory_for(const Stages<float>&);
template int64_t memory_for(const Stages<double>&);
template void run(const Stages<float>&, const Group<float>&, float*);
template void run(const Stages<double>&, const Group<double>&, double*);

}  // namespace brasa::compiler::fourier
