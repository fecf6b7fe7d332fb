#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>

#include <brasa/elements.h>

#include "compiler/libraries/library.h"
#include "compiler/libraries/scratch.h"
#include "compiler/libraries/turned.h"
#include "runtime/thread_pool.h"
#include "support/error.h"

// A call's tensors as matrices, and column-major copies of them.
namespace brasa::compiler::lapack {

// For as many elements; LAPACK wants an address where there are none, too.
template <class T>
Scratch<T> room_for(int64_t n) {
  return Scratch<T>(std::max<int64_t>(n, 1));
}

// One tensor as matrices or vectors of `last` dimensions.
struct Stack {
  const LibraryTensor& t;
  int64_t rows, cols, count = 1;
  Stack(const LibraryTensor& tensor, size_t last) : t(tensor) {
    size_t batch = t.sizes.size() - last;
    rows = last > 0 ? t.sizes[batch] : 1;
    cols = last > 1 ? t.sizes[batch + 1] : 1;
    for (size_t d = 0; d < batch; ++d) count *= t.sizes[d];
  }
  template <class T>
  T* at(int64_t b) const {
    return static_cast<T*>(t.data) + b * rows * cols;
  }
  template <class T>
  Scratch<T> columns(int64_t b) const {
    return columns<T>(b, cols);
  }
  // As it lies, which is the transpose for LAPACK.
  template <class T>
  Scratch<T> copy(int64_t b) const {
    Scratch<T> out = room_for<T>(rows * cols);
    std::copy_n(at<T>(b), rows * cols, out.data());
    return out;
  }
  // The first `n`, and back from column-major memory.
  template <class T>
  Scratch<T> columns(int64_t b, int64_t n, int64_t room = 0) const {
    Scratch<T> out = room_for<T>(std::max(rows * n, room));
    transpose(at<T>(b), cols, out.data(), rows, rows, n);
    return out;
  }
  template <class T>
  void put(int64_t b, const T* from, int64_t n) const {
    transpose(from, rows, at<T>(b), cols, n, rows);
  }
  template <class T>
  void put(int64_t b, const T* from) const {
    put(b, from, cols);
  }
};

// f(number of a matrix) for all, on several threads.
template <class F>
void each(const Stack& s, F f) {
  if (s.count == 0) return;
  int64_t work = std::max<int64_t>(1, s.rows * s.cols * std::min(s.rows, s.cols));
  runtime::parallel_for(s.count, std::max<int64_t>(1, 20000 / work), [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) f(b);
  });
}

// kFunction(std::type_identity<T>(), call) for the type of the elements.
template <auto kFunction>
void by_type(const LibraryCall& call) {
  visit_dtype(call.inputs[0].dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>)
      kFunction(type, call);
    else
      fail_internal(str("LAPACK has no ", name(call.inputs[0].dtype)));
  });
}

}  // namespace brasa::compiler::lapack
