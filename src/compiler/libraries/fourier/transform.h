#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "compiler/libraries/fourier/lanes.h"

namespace brasa::compiler::fourier {

/// Lines in memory: element k of one lies `k * step` behind its start, and `along` says where lines start, outer dimensions first. Parts
/// that are null are 0, or nobody reads them.
template <class T>
struct Signals {
  struct Dim {
    int64_t size, step;
  };
  T *re, *im;
  int64_t step;
  std::vector<Dim> along;
};

/// Complex numbers.
template <class T>
struct Factors {
  std::vector<T> re, im;
  explicit Factors(int64_t n = 0) : re(n), im(n) {}
};

/// What is made of lines.
template <class T>
struct Request {
  Signals<T> in, out;
  int64_t lines;
  int64_t kept;  // results of each, from the first on
  bool backward = false;
  T re_factor = 1, im_factor = 1;  // of the results
  bool from_half = false;  // to real lines, backward: the first length/2 + 1 numbers are given, others are conjugates
};

/// Σ_j x[j] exp(-2πi jk/n) of one length, for any lines and from any threads; backward exp(2πi jk/n).
template <class T>
class Transform {
 public:
  explicit Transform(int64_t length) : Transform(length, kLongest) {}
  /// Lines without imaginary parts, and results of which only the real parts are asked for, are transformed two at a time.
  void run(const Request<T>& r) const;

 private:
  template <class>
  friend class Transform;

  /// Beyond it, single lines are the rows and columns of a matrix where they can be; so are all that do not fit into a core's cache as
  /// vectors.
  static constexpr int64_t kLongest = 1024, kLongestInLanes = 4096;
  /// Lines of numbers beside each other that have columns and rows in the first cache.
  static constexpr int64_t kLongestAlong = Stages<T>::kNear * Stages<T>::kNear;

  Transform(int64_t length, int64_t longest);
  void split_into(int64_t rows, int64_t columns);
  void make_chirp();
  bool fits_lanes(int64_t lines) const;
  bool convolves() const { return convolution_ || (columns_ && (columns_->convolves() || rows_->convolves())); }
  bool runs_along(const Request<T>& r) const;
  void forward(const Signals<T>& in, const Signals<T>& out, int64_t lines) const;
  void direct(const Signals<T>& in, const Signals<T>& out, int64_t lines, const Factors<T>* turns = nullptr) const;
  void in_groups(Request<T> r, bool along) const;
  void all_frequencies(const Request<T>& r) const;
  void in_pairs(const Request<T>& r) const;
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
