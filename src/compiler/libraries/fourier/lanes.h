#pragma once

#include <cstdint>
#include <vector>

/// Fourier transforms of as many lines at a time as a vector register has lanes, so that no lane asks for another's numbers.
namespace brasa::compiler::fourier {

constexpr int kMostLanes = 16;
constexpr int64_t kLargestRadix = 50;  // a step of radix p takes p² products

/// A transform as steps that leave their results in order (T. G. Stockham, 1966), forward: exp(-2πi jk/n). Swap real and imaginary
/// parts on both sides for the other direction.
template <class T>
struct Stages {
  /// `together` results lie beside each other, and `left` transforms of `radix` points are next.
  struct Stage {
    int64_t radix, left, together;
    std::vector<T> turns;  // radix - 1 complex factors for each of `left`
    std::vector<T> roots;  // of unity, of a radix that has no formula of its own
  };
  int64_t length;
  std::vector<Stage> stages;

  /// All prime factors of the length are at most kLargestRadix.
  explicit Stages(int64_t length);
};

/// `count` lines, at most lanes(). Element k of line i lies at starts[i] + k * step.
template <class T>
struct Group {
  struct Side {
    T *re, *im;
    int64_t step;
    int64_t starts[kMostLanes];
  };
  Side in, out;  // `in` is read only
  int count;
  /// Results are multiplied by these, if there are any: element k of the first line at k * turns_step, lines beside each other.
  const T *turns_re = nullptr, *turns_im = nullptr;
  int64_t turns_step = 0;
};

/// How many lines run at a time on this machine.
template <class T>
int lanes();
/// How many numbers `run` needs as memory of its own.
template <class T>
int64_t memory_for(int64_t length);
template <class T>
void run(const Stages<T>& stages, const Group<T>& group, T* memory);

}  // namespace brasa::compiler::fourier
