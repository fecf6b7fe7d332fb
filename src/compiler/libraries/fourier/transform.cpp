#include "compiler/libraries/fourier/transform.h"

#include <algorithm>
#include <cmath>

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

// The one nearest to the root from below.
int64_t middle_divisor(int64_t n) {
  auto d = static_cast<int64_t>(std::sqrt(static_cast<double>(n)));
  while (n % d) --d;
  return d;
}

template <class T>
typename Group<T>::Side side_of(const Signals<T>& s, int64_t first, int count) {
  typename Group<T>::Side side{s.re, s.im, s.step, {}};
  for (int i = 0; i < count; ++i)
    side.starts[i] = (first + i) / s.inner * s.outer_step + (first + i) % s.inner * s.inner_step;
  return side;
}

// Groups of lines, so many that a thread's part is worth its start.
template <class T, class F>
void for_groups(int64_t lines, int64_t length, F&& body) {
  int64_t width = lanes<T>(), grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(length * width, 1));
  runtime::parallel_for((lines + width - 1) / width, grain,
                        [&](int64_t begin, int64_t end) { body(begin * width, std::min(end * width, lines), width); });
}

}  // namespace

template <class T>
Transform<T>::Transform(int64_t length, int64_t longest) : length_(length) {
  int64_t rows = length > longest ? middle_divisor(length) : 1;
  if (largest_prime_factor(length) > kLargestRadix)
    make_chirp();
  else if (rows >= 8)
    split_into(rows, length / rows);
  else
    stages_.emplace(length);
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
  int64_t n = length_, m = 1;
  while (m < 2 * n - 1) m *= 2;
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
  convolution_->run({conjugate.re.data(), conjugate.im.data(), 1, 1, 0, 0},
                    {kernel_.re.data(), kernel_.im.data(), 1, 1, 0, 0}, 1);
  for (int64_t k = 0; k < m; ++k) kernel_.re[k] /= static_cast<double>(m), kernel_.im[k] /= static_cast<double>(m);
}

template <class T>
void Transform<T>::direct(const Signals<T>& in, const Signals<T>& out, int64_t lines, const Factors<T>* turns) const {
  for_groups<T>(lines, length_, [&](int64_t begin, int64_t end, int64_t width) {
    std::vector<T> memory(memory_for<T>(length_));
    for (int64_t i = begin; i < end; i += width) {
      auto count = static_cast<int>(std::min(width, end - i));
      Group<T> group{side_of(in, i, count), side_of(out, i, count), count};
      if (turns) group.turns_re = &turns->re[i], group.turns_im = &turns->im[i], group.turns_step = lines;
      fourier::run(*stages_, group, memory.data());
    }
  });
}

template <class T>
void Transform<T>::split(const Signals<T>& in, const Signals<T>& out, int64_t lines) const {
  int64_t rows = columns_->length_, columns = rows_->length_;
  std::vector<T> re(length_), im(length_);
  for (int64_t line = 0; line < lines; ++line) {
    auto from = side_of(in, line, 1), to = side_of(out, line, 1);
    int64_t start = from.starts[0], end = to.starts[0];
    columns_->direct({in.re + start, in.im + start, in.step * columns, columns, in.step, 0},
                     {re.data(), im.data(), columns, columns, 1, 0}, columns, &turns_);
    rows_->direct({re.data(), im.data(), 1, rows, columns, 0},
                  {out.re + end, out.im + end, out.step * rows, rows, out.step, 0}, rows);
  }
}

template <class T>
void Transform<T>::chirped(const Signals<T>& in, const Signals<T>& out, int64_t lines) const {
  auto m = static_cast<int64_t>(kernel_.re.size());
  for_groups<double>(lines, m, [&](int64_t begin, int64_t end, int64_t width) {
    std::vector<double> memory(4 * m * width);
    double *re = memory.data(), *im = re + m * width, *other_re = im + m * width, *other_im = other_re + m * width;
    Signals<double> here{re, im, width, width, 1, 0}, there{other_re, other_im, width, width, 1, 0};
    Signals<double> here_back{im, re, width, width, 1, 0}, there_back{other_im, other_re, width, width, 1, 0};
    auto multiply = [](const Factors<double>& by, int64_t k, double x, double y, auto& to_re, auto& to_im) {
      to_re = x * by.re[k] - y * by.im[k];
      to_im = x * by.im[k] + y * by.re[k];
    };
    for (int64_t first = begin; first < end; first += width) {
      auto count = static_cast<int>(std::min(width, end - first));
      auto from = side_of(in, first, count), to = side_of(out, first, count);
      for (int64_t k = 0; k < length_; ++k)
        for (int i = 0; i < count; ++i) {
          int64_t at = from.starts[i] + k * from.step, place = k * width + i;
          multiply(chirp_, k, in.re[at], in.im[at], re[place], im[place]);
        }
      std::fill(re + length_ * width, re + m * width, 0.0);
      std::fill(im + length_ * width, im + m * width, 0.0);
      convolution_->run(here, there, count);
      for (int64_t k = 0; k < m; ++k)
        for (int64_t at = k * width; at < k * width + count; ++at)
          multiply(kernel_, k, other_re[at], other_im[at], other_re[at], other_im[at]);
      convolution_->run(there_back, here_back, count);
      for (int64_t k = 0; k < length_; ++k)
        for (int i = 0; i < count; ++i) {
          int64_t at = to.starts[i] + k * to.step, place = k * width + i;
          double x, y;
          multiply(chirp_, k, re[place], im[place], x, y);
          out.re[at] = static_cast<T>(x), out.im[at] = static_cast<T>(y);
        }
    }
  });
}

template <class T>
void Transform<T>::run(const Signals<T>& in, const Signals<T>& out, int64_t lines) const {
  if (stages_) return direct(in, out, lines);
  if (columns_) return split(in, out, lines);
  chirped(in, out, lines);
}

template class Transform<float>;
template class Transform<double>;

}  // namespace brasa::compiler::fourier
