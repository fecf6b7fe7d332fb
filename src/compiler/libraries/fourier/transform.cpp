#include "compiler/libraries/fourier/transform.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <brasa/threads.h>

#include "compiler/libraries/fourier/line.h"
#include "runtime/thread_pool.h"

namespace brasa::compiler::fourier {
namespace {

constexpr double kPi = 3.141592653589793238463;

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p)
    for (; n % p == 0; n /= p) largest = p;
  return n > 1 ? n : largest;
}

// Lines in order: where they start is found by divisions once, and then from line to line.
template <class T>
class Walk {
 public:
  using Side = typename Group<T>::Side;

  Walk(const Signals<T>& s, int64_t first) : signals_(s) {
    for (size_t d = s.along.size(); d-- > 0;) {
      at_[d] = first % s.along[d].size;
      first /= s.along[d].size;
      start_ += at_[d] * s.along[d].step;
    }
  }

  void next(int count, Side& side) {
    side.re = signals_.re, side.im = signals_.im, side.step = signals_.step, side.count = count;
    for (int i = 0; i < count; ++i) {
      side.starts[i] = start_;
      for (size_t d = signals_.along.size(); d-- > 0;) {
        start_ += signals_.along[d].step;
        if (++at_[d] < signals_.along[d].size) break;
        start_ -= at_[d] * signals_.along[d].step;
        at_[d] = 0;
      }
    }
  }

 private:
  static constexpr size_t kMostDims = 64;
  const Signals<T>& signals_;
  int64_t at_[kMostDims], start_ = 0;
};

template <class T>
int64_t start_of(const Signals<T>& s, int64_t line) {
  typename Group<T>::Side side;
  Walk<T>(s, line).next(1, side);
  return side.starts[0];
}

// Groups of lines, so many that a thread's part is worth its start.
template <class F>
void for_groups(int64_t lines, int64_t length, int64_t width, F&& body) {
  int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(length * width, 1));
  runtime::parallel_for((lines + width - 1) / width, grain,
                        [&](int64_t begin, int64_t end) { body(begin * width, std::min(end * width, lines), width); });
}

}  // namespace

template <class T>
Transform<T>::Transform(int64_t length, int64_t longest) : length_(length) {
  int64_t prime = largest_prime_factor(length), rows = length > longest ? middle_divisor(length) : 1;
  if (prime > kLargestRadix) {
    // A convolution of the prime alone is shorter than one of the whole length.
    int64_t rest = length / prime;
    if (rest > 1 && rest <= kLongestInLanes && largest_prime_factor(rest) <= kLargestRadix)
      split_into(rest, prime);
    else
      make_chirp();
    return;
  }
  if (rows >= 8) split_into(rows, length / rows);
  if (!columns_ || length <= kLongestAlong) stages_.emplace(length);
}

template <class T>
void Transform<T>::split_into(int64_t rows, int64_t columns) {
  columns_.reset(new Transform(rows, rows));
  rows_.reset(new Transform(columns, columns));
  turns_ = Factors<T>(length_);
  for (int64_t k = 0; k < rows; ++k)
    for (int64_t b = 0; b < columns; ++b) {
      double angle = -2 * kPi * static_cast<double>(k * b % length_) / static_cast<double>(length_);
      turns_.re[k * columns + b] = static_cast<T>(std::cos(angle));
      turns_.im[k * columns + b] = static_cast<T>(std::sin(angle));
    }
}

template <class T>
void Transform<T>::make_chirp() {
  int64_t n = length_, m = std::numeric_limits<int64_t>::max();
  for (int64_t size : {1, 3, 5}) {
    while (size < 2 * n - 1) size *= 2;
    m = std::min(m, size);
  }
  chirp_ = Factors<double>(n), kernel_ = Factors<double>(m);
  Factors<double> conjugate(m);
  for (int64_t j = 0; j < n; ++j) {
    // j² modulo 2n, without a product that overflows.
    auto square = static_cast<int64_t>(static_cast<unsigned __int128>(j) * static_cast<uint64_t>(j) % (2 * n));
    double angle = -kPi * static_cast<double>(square) / static_cast<double>(n);
    chirp_.re[j] = std::cos(angle), chirp_.im[j] = std::sin(angle);
    conjugate.re[j] = conjugate.re[(m - j) % m] = chirp_.re[j];
    conjugate.im[j] = conjugate.im[(m - j) % m] = -chirp_.im[j];
  }
  convolution_ = std::make_unique<Transform<double>>(m);
  convolution_->forward({conjugate.re.data(), conjugate.im.data(), 1, {}},
                        {kernel_.re.data(), kernel_.im.data(), 1, {}}, 1);
  for (int64_t k = 0; k < m; ++k) kernel_.re[k] /= static_cast<double>(m), kernel_.im[k] /= static_cast<double>(m);
}

template <class T>
void Transform<T>::direct(const Signals<T>& in, const Signals<T>& out, int64_t lines, const Factors<T>* turns) const {
  for_groups(lines, length_, lanes<T>(), [&](int64_t begin, int64_t end, int64_t width) {
    auto memory = std::make_unique_for_overwrite<T[]>(memory_for(*stages_));
    Walk<T> from(in, begin), to(out, begin);
    Group<T> group{};
    group.kept = length_;
    for (int64_t i = begin; i < end; i += width) {
      auto count = static_cast<int>(std::min(width, end - i));
      from.next(count, group.in), to.next(count, group.out);
      if (turns) group.turns_re = &turns->re[i], group.turns_im = &turns->im[i], group.turns_step = lines;
      fourier::run(*stages_, group, memory.get());
    }
  });
}

template <class T>
void Transform<T>::in_groups(Request<T> r, bool along) const {
  Form form = r.from_half ? Form::FromHalf : !r.in.im ? Form::FromReals : !r.out.im ? Form::ToReals : Form::Complex;
  // The other direction is that of conjugates, and conjugated.
  if (r.backward && form == Form::FromReals) r.im_factor = -r.im_factor;
  if (form == Form::ToReals || form == Form::FromHalf) r.im_factor = r.re_factor;
  if (r.backward && form == Form::Complex)
    std::swap(r.in.re, r.in.im), std::swap(r.out.re, r.out.im), std::swap(r.re_factor, r.im_factor);
  int64_t together = along ? 1 : lanes<T>(), in_lane = form == Form::Complex ? 1 : 2;
  for_groups(r.lines, length_, together * in_lane, [&](int64_t begin, int64_t end, int64_t width) {
    auto memory = std::make_unique_for_overwrite<T[]>(along ? memory_along(*stages_) : memory_for(*stages_));
    Walk<T> from(r.in, begin), to(r.out, begin);
    Group<T> group{};
    group.kept = r.kept, group.form = form, group.conjugate = r.backward;
    group.re_factor = r.re_factor, group.im_factor = r.im_factor;
    for (int64_t i = begin; i < end; i += width) {
      auto count = std::min(end - i, width), first = std::min(count, together);
      from.next(static_cast<int>(first), group.in), to.next(static_cast<int>(first), group.out);
      if (form != Form::Complex) {
        from.next(static_cast<int>(count - first), group.other_in);
        to.next(static_cast<int>(count - first), group.other_out);
      }
      (along ? run_along<T> : fourier::run<T>)(*stages_, group, memory.get());
    }
  });
}

template <class T>
void Transform<T>::split(const Signals<T>& in, const Signals<T>& out, int64_t lines) const {
  int64_t rows = columns_->length_, columns = rows_->length_;
  std::vector<T> re(length_), im(length_);
  for (int64_t line = 0; line < lines; ++line) {
    int64_t start = start_of(in, line), end = start_of(out, line);
    auto at = [](T* part, int64_t place) { return part ? part + place : part; };
    columns_->direct({at(in.re, start), at(in.im, start), in.step * columns, {{columns, in.step}}},
                     {re.data(), im.data(), columns, {{columns, 1}}}, columns, &turns_);
    rows_->forward({re.data(), im.data(), 1, {{rows, columns}}},
                   {at(out.re, end), at(out.im, end), out.step * rows, {{rows, out.step}}}, rows);
  }
}

template <class T>
void Transform<T>::chirped(const Signals<T>& in, const Signals<T>& out, int64_t lines) const {
  auto m = static_cast<int64_t>(kernel_.re.size());
  bool along = convolution_->stages_ && lines >= get_num_threads();
  auto multiply = [](const Factors<double>& by, int64_t k, double x, double y, auto& to_re, auto& to_im) {
    to_re = x * by.re[k] - y * by.im[k];
    to_im = x * by.im[k] + y * by.re[k];
  };
  for_groups(lines, m, 1, [&](int64_t begin, int64_t end, int64_t) {
    auto memory = std::make_unique_for_overwrite<double[]>(4 * m);
    double *re = memory.get(), *im = re + m, *other_re = im + m, *other_im = other_re + m;
    // Vectors run along a line, unless threads do.
    auto transform = [&](const Signals<double>& from, const Signals<double>& to) {
      along ? convolution_->in_groups({from, to, 1, m}, true) : convolution_->forward(from, to, 1);
    };
    for (int64_t line = begin; line < end; ++line) {
      int64_t start_in = start_of(in, line), start_out = start_of(out, line);
      for (int64_t k = 0; k < length_; ++k) {
        int64_t at = start_in + k * in.step;
        multiply(chirp_, k, in.re ? in.re[at] : T(0), in.im ? in.im[at] : T(0), re[k], im[k]);
      }
      std::fill(re + length_, re + m, 0.0);
      std::fill(im + length_, im + m, 0.0);
      transform({re, im, 1, {}}, {other_re, other_im, 1, {}});
      for (int64_t k = 0; k < m; ++k) multiply(kernel_, k, other_re[k], other_im[k], other_re[k], other_im[k]);
      transform({other_im, other_re, 1, {}}, {im, re, 1, {}});
      for (int64_t k = 0; k < length_; ++k) {
        int64_t at = start_out + k * out.step;
        double x, y;
        multiply(chirp_, k, re[k], im[k], x, y);
        if (out.re) out.re[at] = static_cast<T>(x);
        if (out.im) out.im[at] = static_cast<T>(y);
      }
    }
  });
}

template <class T>
bool Transform<T>::fits_lanes(int64_t lines) const {
  return stages_ && (!columns_ || (length_ <= kLongestInLanes && lines >= lanes<T>()));
}

// Complex lines of numbers beside each other, as many as there are threads or so short that one line is no work for several. Real ones are
// two in a lane.
template <class T>
bool Transform<T>::runs_along(const Request<T>& r) const {
  auto lie_beside = [](const Signals<T>& s) {
    bool in_pairs = s.re && s.im && (s.im == s.re + 1 || s.re == s.im + 1);
    return s.step == (in_pairs ? 2 : 1);
  };
  return stages_ && r.in.im && r.out.re && r.out.im && fills_vectors(*stages_) && lie_beside(r.in) &&
         lie_beside(r.out) && (!columns_ || r.lines >= get_num_threads());
}

template <class T>
void Transform<T>::forward(const Signals<T>& in, const Signals<T>& out, int64_t lines) const {
  if (fits_lanes(lines)) return direct(in, out, lines);
  if (columns_) return split(in, out, lines);
  chirped(in, out, lines);
}

// As a request that gives them.
template <class T>
void Transform<T>::all_frequencies(const Request<T>& r) const {
  std::vector<T> re(r.lines * length_), im(re.size());
  int64_t half = length_ / 2 + 1;
  runtime::parallel_for(r.lines, std::max<int64_t>(1, 16384 / length_), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t start = start_of(r.in, line);
      T *to_re = &re[line * length_], *to_im = &im[line * length_];
      for (int64_t k = 0; k < half; ++k) {
        int64_t at = start + k * r.in.step, m = k ? length_ - k : 0;
        to_re[k] = to_re[m] = r.in.re[at];
        to_im[k] = r.in.im ? r.in.im[at] : T(0);
        to_im[m] = k == m ? T(0) : -to_im[k];
      }
    }
  });
  Request<T> all = r;
  all.in = {re.data(), im.data(), 1, {{r.lines, length_}}};
  all.from_half = false;
  run(all);
}

// Two real lines a, b as a + ib, of whose results A + iB those of k and of n - k are A's and B's. Where the real parts of results are asked for,
// the lines are first made such that they have no others: X[k] and what is conjugate to X[n - k] in equal parts.
template <class T>
void Transform<T>::in_pairs(const Request<T>& r) const {
  int64_t n = length_, pairs = (r.lines + 1) / 2, grain = std::max<int64_t>(1, 16384 / n);
  bool from_reals = !r.in.im;
  Factors<T> two(pairs * n), made(pairs * n);
  auto each_pair = [&](const Signals<T>& s, const auto& f) {
    runtime::parallel_for(pairs, grain, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p)
        for (int64_t line = 2 * p; line < std::min(2 * p + 2, r.lines); ++line)
          f(p * n, start_of(s, line), line % 2 == 1);
    });
  };
  each_pair(r.in, [&](int64_t at, int64_t start, bool second) {
    for (int64_t k = 0; k < n; ++k) {
      int64_t here = start + k * r.in.step, there = start + (k ? n - k : 0) * r.in.step;
      if (from_reals) {
        (second ? two.im : two.re)[at + k] = r.in.re[here];
        continue;
      }
      T re = (r.in.re[here] + r.in.re[there]) / 2, im = (r.in.im[here] - r.in.im[there]) / 2;
      two.re[at + k] += second ? -im : re;
      two.im[at + k] += second ? re : im;
    }
  });
  // Backward is forward with the parts exchanged; of real lines the results are conjugates.
  bool exchanged = r.backward && !from_reals;
  if (exchanged) std::swap(two.re, two.im);
  forward({two.re.data(), two.im.data(), 1, {{pairs, n}}}, {made.re.data(), made.im.data(), 1, {{pairs, n}}}, pairs);
  if (exchanged) std::swap(made.re, made.im);
  T im_factor = r.backward ? -r.im_factor : r.im_factor;
  each_pair(r.out, [&](int64_t at, int64_t start, bool second) {
    for (int64_t k = 0; k < r.kept; ++k) {
      int64_t to = start + k * r.out.step, here = at + k, there = at + (k ? n - k : 0);
      if (!from_reals) {
        r.out.re[to] = (second ? made.im : made.re)[here] * r.re_factor;
        continue;
      }
      T re = second ? made.im[here] + made.im[there] : made.re[here] + made.re[there],
        im = second ? made.re[there] - made.re[here] : made.im[here] - made.im[there];
      if (r.out.re) r.out.re[to] = re / 2 * r.re_factor;
      if (r.out.im) r.out.im[to] = im / 2 * im_factor;
    }
  });
}

template <class T>
void Transform<T>::run(const Request<T>& r) const {
  if (runs_along(r)) return in_groups(r, true);
  if (fits_lanes(r.lines)) return in_groups(r, false);
  if (r.from_half) return all_frequencies(r);
  if (convolves() && r.lines > 1 && r.in.re && r.out.re && (!r.in.im || !r.out.im)) return in_pairs(r);
  Signals<T> in = r.in, out = r.out;
  if (r.backward) std::swap(in.re, in.im), std::swap(out.re, out.im);
  if (r.kept == length_ && r.re_factor == 1 && r.im_factor == 1) return forward(in, out, r.lines);
  // All results first, then those that are asked for.
  std::vector<T> re(r.lines * length_), im(re.size());
  Signals<T> all{re.data(), im.data(), 1, {{r.lines, length_}}};
  forward(in, all, r.lines);
  if (r.backward) std::swap(out.re, out.im), std::swap(re, im);
  runtime::parallel_for(r.lines, std::max<int64_t>(1, 16384 / r.kept), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      int64_t start = start_of(out, line);
      for (int64_t k = 0; k < r.kept; ++k) {
        if (out.re) out.re[start + k * out.step] = re[line * length_ + k] * r.re_factor;
        if (out.im) out.im[start + k * out.step] = im[line * length_ + k] * r.im_factor;
      }
    }
  });
}

template class Transform<float>;
template class Transform<double>;

}  // namespace brasa::compiler::fourier
