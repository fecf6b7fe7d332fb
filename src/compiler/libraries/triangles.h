#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>

#include "compiler/libraries/lapack_functions.h"
#include "compiler/libraries/turned.h"

// Systems of triangles, X T⁻¹ or X T⁻ᵀ in the place of X, all of it column-major. Large triangles are halved: the products in between are what
// BLAS is best at (OpenBLAS 0.3.21 on AVX-512 takes half the time for 320 rows of doubles).
namespace brasa::compiler::lapack {

struct Triangle {
  bool upper, transposed, unit;
  bool forward() const { return upper != transposed; }
};

constexpr int kSmallTriangle = 64;

/// The half that is solved first if forward, the other one, and the square that is multiplied in between.
template <class T>
struct Halves {
  int first, last;
  const T *square, *rest;
  Halves(const Triangle& how, int n, const T* t, int64_t ld) : first(n / 32 * 16), last(n - first) {
    rest = t + first + first * ld;
    square = how.upper ? t + first * ld : t + first;
  }
};

template <class T>
void multiply(int rows, int columns, int summed, T* x, int x_ld, const T* t, const char* op, int ld, T* from) {
  T one = 1, minus = -1;
  BRASA_LAPACK(T, gemm)
  ("N", op, &rows, &columns, &summed, &minus, x, &x_ld, t, &ld, &one, from, &x_ld, kLength, kLength);
}

template <class T>
void solve_from_right(const Triangle& how, int rows, int n, const T* t, int ld, T* x, int x_ld) {
  constexpr int kFewRows = 16;
  const char* op = how.transposed ? "T" : "N";
  // A single row as a column: trsm would pack the triangle first.
  if (rows == 1) {
    BRASA_LAPACK(T, trsv)
    (how.upper ? "U" : "L", how.transposed ? "N" : "T", how.unit ? "U" : "N", &n, t, &ld, x, &x_ld, kLength, kLength,
     kLength);
    return;
  }
  if (n <= kSmallTriangle || rows < kFewRows) {
    T one = 1;
    BRASA_LAPACK(T, trsm)
    ("R", how.upper ? "U" : "L", op, how.unit ? "U" : "N", &rows, &n, &one, t, &ld, x, &x_ld, kLength, kLength, kLength,
     kLength);
    return;
  }
  Halves<T> half(how, n, t, ld);
  T* behind = x + int64_t{half.first} * x_ld;
  if (how.forward()) {
    solve_from_right(how, rows, half.first, t, ld, x, x_ld);
    multiply(rows, half.last, half.first, x, x_ld, half.square, op, ld, behind);
    solve_from_right(how, rows, half.last, half.rest, ld, behind, x_ld);
  } else {
    solve_from_right(how, rows, half.last, half.rest, ld, behind, x_ld);
    multiply(rows, half.first, half.last, behind, x_ld, half.square, op, ld, x);
    solve_from_right(how, rows, half.first, t, ld, x, x_ld);
  }
}

/// Whether zeros of a square X below its diagonal stay zeros, as those of an identity do: they meet finite numbers alone.
template <class T>
bool keeps_zeros(const Triangle& how, int64_t n, const T* t, int64_t ld, const T* x, int64_t x_ld) {
  if (!how.forward() || n <= kSmallTriangle) return false;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j)
      if (x[i * x_ld + j] != T(0)) return false;
  for (int64_t i = 0; i < n; ++i) {
    bool finite = how.unit || t[i * ld + i] != T(0);
    for (int64_t j = how.upper ? 0 : i, end = how.upper ? i + 1 : n; j < end; ++j)
      finite &= t[i * ld + j] - t[i * ld + j] == T(0);
    if (!finite) return false;
  }
  return true;
}
/// As solve_from_right of such an X, of a third of the products.
template <class T>
void solve_with_zeros(const Triangle& how, int n, const T* t, int ld, T* x, int x_ld) {
  if (n <= kSmallTriangle) return solve_from_right(how, n, n, t, ld, x, x_ld);
  Halves<T> half(how, n, t, ld);
  T* behind = x + int64_t{half.first} * x_ld;
  solve_with_zeros(how, half.first, t, ld, x, x_ld);
  multiply(half.first, half.last, half.first, x, x_ld, half.square, how.transposed ? "T" : "N", ld, behind);
  solve_from_right(how, half.first, half.last, half.rest, ld, behind, x_ld);
  solve_with_zeros(how, half.last, half.rest, ld, behind + half.first, x_ld);
}

/// A Hermitian matrix from its upper or lower triangle.
template <class T>
void mirror(bool upper, int64_t n, T* x) {
  constexpr int64_t kSide = 32;
  // Rows of memory are columns.
  for (int64_t top = 0; top < n; top += kSide) {
    int64_t rows = std::min(kSide, n - top);
    for (int64_t i = top; i < top + rows; ++i)
      for (int64_t j = top; j < i; ++j) (upper ? x[j * n + i] : x[i * n + j]) = upper ? x[i * n + j] : x[j * n + i];
    for (int64_t left = 0; left < top; left += kSide) {
      T *low = x + top * n + left, *high = x + left * n + top;
      upper ? transpose(low, n, high, n, rows, kSide) : transpose(high, n, low, n, kSide, rows);
    }
  }
  if constexpr (kComplex<T>)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = upper ? i + 1 : 0, end = upper ? n : i; j < end; ++j) x[i * n + j] = std::conj(x[i * n + j]);
}

}  // namespace brasa::compiler::lapack
