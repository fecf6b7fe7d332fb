#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/libraries/fourier/lanes.h"

namespace brasa::compiler::fourier {

/// Lines in memory: element k of line i lies at i / inner * outer_step + i % inner * inner_step + k * step.
template <class T>
struct Signals {
  T *re, *im;
  int64_t step, inner, inner_step, outer_step;
};

/// Complex numbers.
template <class T>
struct Factors {
  std::vector<T> re, im;
  explicit Factors(int64_t n = 0) : re(n), im(n) {}
};

/// Σ_j x[j] exp(-2πi jk/n) of one length, for any lines and from any threads. Real and imaginary parts that change places on both
/// sides give the other direction.
template <class T>
class Transform {
 public:
  explicit Transform(int64_t length) : Transform(length, kLongest) {}
  void run(const Signals<T>& in, const Signals<T>& out, int64_t lines) const;

 private:
  /// Beyond it, lines do not fit into a core's cache as vectors, and become the rows and columns of a matrix where they can.
  static constexpr int64_t kLongest = 1024;

  Transform(int64_t length, int64_t longest);
  void split_into(int64_t rows, int64_t columns);
  void make_chirp();
  void direct(const Signals<T>& in, const Signals<T>& out, int64_t lines, const Factors<T>* turns = nullptr) const;
  void split(const Signals<T>& in, const Signals<T>& out, int64_t lines) const;
  void chirped(const Signals<T>& in, const Signals<T>& out, int64_t lines) const;

  int64_t length_;
  std::optional<Stages<T>> stages_;
  // A matrix of as many numbers: columns, then each number's turn, then rows (W. M. Gentleman and G. Sande, 1966).
  std::unique_ptr<Transform> columns_, rows_;
  Factors<T> turns_;
  // A convolution, where a prime factor is large. L. Bluestein (1970): jk = (j² + k² - (k - j)²) / 2. In double precision: two
  // transforms and a chirp lose a digit.
  std::unique_ptr<Transform<double>> convolution_;
  Factors<double> chirp_, kernel_;
};

}  // namespace brasa::compiler::fourier
