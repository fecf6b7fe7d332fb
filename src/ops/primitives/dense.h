#pragma once

#include <complex>
#include <cstdint>
#include <vector>

// Dense factorisations as textbooks have them, for the interpreter.
namespace brasa::ops::dense {

// Element: double or std::complex<double>.
template <class T>
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<T> a;
  Matrix() = default;
  Matrix(int64_t m, int64_t n) : rows(m), cols(n), a(m * n) {}
  T& operator()(int64_t i, int64_t j) { return a[i * cols + j]; }
  T operator()(int64_t i, int64_t j) const { return a[i * cols + j]; }
};

inline double conj(double x) { return x; }
inline std::complex<double> conj(std::complex<double> x) { return std::conj(x); }
/// Transposed and conjugated.
template <class T>
Matrix<T> adjoint(const Matrix<T>& a) {
  Matrix<T> t(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j) t(j, i) = conj(a(i, j));
  return t;
}

/// Lower triangle in place; the order of the first minor that is not positive, or 0.
template <class T>
int64_t cholesky(Matrix<T>& a);
/// In place with partial pivoting; the index of the first zero pivot from 1, or 0.
template <class T>
int64_t lu(Matrix<T>& a, std::vector<int64_t>& pivots);
/// A = L D Lᵀ (hermitian: L D Lᴴ) of the lower triangle, in place, D of blocks of one or two rows (Bunch & Kaufman 1977). pivots as
/// LAPACK's sytrf and hetrf: from 1, the row that was exchanged, negative for both rows of a block of two. The index of the first zero
/// block from 1, or 0.
template <class T>
int64_t ldl(Matrix<T>& a, bool hermitian, std::vector<int64_t>& pivots);
/// b becomes A⁻¹ b.
template <class T>
void ldl_solve(const Matrix<T>& ldl, bool hermitian, const std::vector<int64_t>& pivots, Matrix<T>& b);
/// In place; tau[k] of H_k = I - tau v vᴴ with v[k] = 1. R's diagonal is real.
template <class T>
std::vector<T> householder(Matrix<T>& a);
/// The first `columns` columns of H_0 H_1 ….
template <class T>
Matrix<T> product_of_reflectors(const Matrix<T>& a, const std::vector<T>& tau, int64_t columns);
/// Hermitian `a`: eigenvalues ascending, eigenvectors as columns. Jacobi's rotations.
template <class T>
void eigh(Matrix<T> a, std::vector<double>& values, Matrix<T>& vectors);
/// Singular values descending; all columns of u and v with `full`. One-sided Jacobi rotations.
template <class T>
void svd(const Matrix<T>& a, bool full, Matrix<T>& u, std::vector<double>& s, Matrix<T>& v);
/// Of a general square matrix, by the shifted QR iteration in complex numbers.
template <class T>
void eig(const Matrix<T>& a, std::vector<double>& re, std::vector<double>& im, Matrix<double>& vectors_re,
         Matrix<double>& vectors_im);

}  // namespace brasa::ops::dense
