#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

/// Fourier transforms of as many lines at a time as a vector register has lanes, so that no lane asks for another's numbers.
namespace brasa::compiler::fourier {

constexpr int kMostLanes = 16;
constexpr int64_t kLargestRadix = 320;  // a step of radix p takes p² products

/// A transform as steps that leave their results in order (T. G. Stockham, 1966), forward: exp(-2πi jk/n). Swap real and imaginary
/// parts on both sides for the other direction.
template <class T>
struct Stages {
  /// `together` results lie beside each other, and `left` transforms of `radix` points are next.
  struct Stage {
    int64_t radix, left, together;
    std::vector<T> turns;  // radix - 1 complex factors for each of `left`
    std::vector<T> roots;  // of unity, of a radix that has no formula of its own
    // A prime radix p as a convolution of p - 1 numbers, which are in the order of a generator's powers (C. M. Rader, 1968).
    std::unique_ptr<Stages> convolution;
    std::vector<int64_t> powers;
    std::vector<T> kernel;  // transformed and divided by p - 1
  };
  /// Results that lie in a core's first cache as vectors; longer ones are the columns and rows of a matrix, which do.
  static constexpr int64_t kNear = 128;

  int64_t length;
  std::vector<Stage> stages;              // of a short one
  std::unique_ptr<Stages> columns, rows;  // of a long one
  std::vector<T> turns;                   // complex factors between the two, row by row

  /// Vectors for a column or a row twice.
  int64_t near() const { return columns ? 2 * std::max(columns->length, rows->length) : 0; }

  /// All prime factors of the length are at most kLargestRadix. `at_once`: never as a matrix.
  explicit Stages(int64_t length, bool at_once = false);
};

/// What goes in and out as real numbers has two lines in each lane: one as the real, the other as the imaginary part.
enum class Form : uint8_t {
  Complex,
  FromReals,  // in.re and other_in.re; the results of both
  ToReals,    // the real parts of both results, out.re and other_out.re
  FromHalf,   // so too, backward, of lines whose first length/2 + 1 numbers are given, of which others are conjugates
};

template <class T>
struct Group {
  /// `count` lines, at most lanes(). Element k of line i lies at starts[i] + k * step. Parts that are null are 0, or nobody reads them.
  struct Side {
    T *re, *im;
    int64_t step;
    int count;
    int64_t starts[kMostLanes];
  };
  Side in, out;  // `in` is read only
  int64_t kept;  // the first results, which are stored
  Form form = Form::Complex;
  Side other_in{}, other_out{};
  bool conjugate = false;          // what goes in, of ToReals
  T re_factor = 1, im_factor = 1;  // of results
  /// Results are multiplied by these, if there are any: element k of the first line at k * turns_step, lines beside each other.
  const T *turns_re = nullptr, *turns_im = nullptr;
  int64_t turns_step = 0;
};

/// The divisor that is nearest to the root from below.
int64_t middle_divisor(int64_t n);

/// How many lines run at a time on this machine.
template <class T>
int lanes();
/// How many numbers `run` needs as memory of its own.
template <class T>
int64_t memory_for(const Stages<T>& stages);
template <class T>
void run(const Stages<T>& stages, const Group<T>& group, T* memory);

}  // namespace brasa::compiler::fourier
