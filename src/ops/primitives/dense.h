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
/// A = L D Lᵀ of the lower triangle, in place, D of blocks of one or two rows (Bunch & Kaufman 1977). pivots as LAPACK's sytrf: from
/// 1, the row that was exchanged, negative for both rows of a block of two. The index of the first zero block from 1, or 0.
int64_t ldl(Matrix& a, std::vector<int64_t>& pivots);
/// b becomes A⁻¹ b.
void ldl_solve(const Matrix& ldl, const std::vector<int64_t>& pivots, Matrix& b);
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
