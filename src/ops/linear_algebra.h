#pragma once

#include "ops/algebra.h"

// What formulas of matrices are written in: the last two dimensions are a matrix, those before are a batch.
namespace brasa::ops {

Value mm(Value a, Value b);
/// Transposed.
Value mt(Value x);
/// Transposed and conjugated.
Value mh(Value x);
/// Rows and columns.
Expr rows_of(Value x);
Expr columns_of(Value x);
/// `n` rows or columns from `start`.
Value row_block(Value x, Expr start, Expr n);
Value column_block(Value x, Expr start, Expr n);
Value tril(Value x, int64_t diagonal = 0);
Value triu(Value x, int64_t diagonal = 0);
/// The main diagonal as a last dimension, and back.
Value diagonal_of(Value x);
Value diagonal_matrix(Value d);
/// 1 on the main diagonal; x's dtype and last two sizes.
Value identity_like(Value x);
/// The lower triangle with half the diagonal: Φ with A = Φ(A) + Φ(A)ᴴ for Hermitian A.
Value half_lower(Value x);
/// (x + xᴴ) / 2.
Value symmetrised(Value x);
/// A factor for each column, or each row, of x; of x's dtype or its real part's.
Value column_scaled(Value x, Value s);
Value row_scaled(Value s, Value x);

struct Triangle {
  bool upper = false, transposed = false, unit = false;
};
/// T⁻¹ b with T the triangle of a, transposed (not conjugated) if so said. Batches broadcast.
Value solve_triangle(Value a, Value b, Triangle how);
/// b T⁻¹.
Value solve_triangle_right(Value a, Value b, Triangle how);

/// P with P[p[j], j] = 1 for permutations p: A = P A[p].
Value permutation_matrix(Value p, DType dtype);
/// The same as its products with b: Pᵀ b = b[p], and P b. Batches broadcast.
Value permuted_rows(Value b, Value p);
Value unpermuted_rows(Value b, Value p);
/// A⁻¹ b, where l is the Cholesky factor of A, or its adjoint if upper.
Value solve_definite(Value l, Value b, bool upper);
/// H_0 H_1 … of geqrf's reflectors, or its adjoint, times x; without x the first columns, as many as a has.
Value reflected(Value a, Value tau, Value x, bool adjoint);
/// Descending, of each matrix.
Value singular_values(Value a);
/// Whether there is no element.
bool is_empty(Value a);
/// a⁻¹ b for square a, by LU; singular matrices give infinities or NaN.
Value solve_square(Value a, Value b);

}  // namespace brasa::ops

// The dense factorisations, of float32, float64, complex64 and complex128. `info` (int32) is 0, or the order of the first minor that is not positive
// (cholesky) or the index, from 1, of the first pivot that is zero (lu).
namespace brasa::ops::prim {

/// {L, info}: A = L Lᴴ of the lower triangle.
std::array<Value, 2> cholesky(Value a);
/// {U, info}: A = Uᴴ U of the upper triangle.
std::array<Value, 2> upper_cholesky(Value a);
/// {LU, pivots, info} with partial pivoting, as LAPACK's getrf: pivots (int32) count from 1.
std::array<Value, 3> lu(Value a);
/// {LD, pivots, info}: A = L D Lᵀ of a symmetric matrix, as LAPACK's sytrf, or L D Lᴴ of a Hermitian one, as hetrf; and A⁻¹ b from
/// these, of equal batches.
std::array<Value, 3> ldl(Value a, bool hermitian);
Value ldl_solve(Value ld, Value pivots, Value b, bool hermitian);
/// The permutation p (int64) of so many rows that pivots mean: A[p] = L U.
Value lu_permutation(Value pivots, Expr rows);
/// Equal batches.
Value triangular_solve(Value a, Value b, Triangle how);
/// {Q, R}: reduced, or with all columns of Q.
std::array<Value, 2> qr(Value a, bool complete);
/// {a, tau} as LAPACK's geqrf: R in and above the diagonal, the reflectors' vectors below.
std::array<Value, 2> geqrf(Value a);
/// The first columns of the product of geqrf's reflectors, as many as a has.
Value householder_product(Value a, Value tau);
/// A⁻¹, where l is the Cholesky factor of A, or its adjoint if upper.
Value cholesky_inverse(Value l, bool upper);
/// {(LU)ᵀ, pivots, info} of the transposes of square matrices.
std::array<Value, 3> lu_of_transpose(Value a);
/// {eigenvalues ascending, eigenvectors as columns} of the lower triangle.
std::array<Value, 2> eigh(Value a);
/// {U, S, Vᴴ}, S descending; reduced, or with all of U and V.
std::array<Value, 3> svd(Value a, bool full);
/// {re λ, im λ, re V, im V}: columns of V have norm 1.
std::array<Value, 4> eig(Value a);

}  // namespace brasa::ops::prim
