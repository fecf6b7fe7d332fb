#pragma once

#include <cstdint>
#include <vector>

// Dense factorisations as textbooks have them, for the interpreter.
namespace brasa::ops::dense {

struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<double> a;
  Matrix() = default;
  Matrix(int64_t m, int64_t n) : rows(m), cols(n), a(m * n) {}
  double& operator()(int64_t i, int64_t j) { return a[i * cols + j]; }
  double operator()(int64_t i, int64_t j) const { return a[i * cols + j]; }
};

/// Lower triangle in place; the order of the first minor that is not positive, or 0.
int64_t cholesky(Matrix& a);
/// In place with partial pivoting; the index of the first zero pivot from 1, or 0.
int64_t lu(Matrix& a, std::vector<int64_t>& pivots);
/// In place; tau[k] of H_k = I - tau v vᵀ with v[k] = 1.
std::vector<double> householder(Matrix& a);
/// The first `columns` columns of H_0 H_1 ….
Matrix product_of_reflectors(const Matrix& a, const std::vector<double>& tau, int64_t columns);
/// Symmetric `a`: eigenvalues ascending, eigenvectors as columns. Jacobi's rotations.
void eigh(Matrix a, std::vector<double>& values, Matrix& vectors);
/// Singular values descending; all columns of u and v with `full`. One-sided Jacobi rotations.
void svd(const Matrix& a, bool full, Matrix& u, std::vector<double>& s, Matrix& v);
/// Of a general square matrix, by the shifted QR iteration in complex numbers.
void eig(const Matrix& a, std::vector<double>& re, std::vector<double>& im, Matrix& vectors_re, Matrix& vectors_im);

}  // namespace brasa::ops::dense
