#pragma once

#include <optional>

#include <brasa/tensor.h>

// Tensors of which only some elements are stored. In coordinate format (kSparse) the first `sparse_dim` dimensions are given by
// int64 indices [sparse_dim, nnz], one column an entry, and values are [nnz, dense sizes…]; entries of one index count as their
// sum. In compressed rows (kSparseCsr) row r of a matrix has the entries crow_indices[r] … crow_indices[r + 1] - 1.
// The methods of Tensor convert (to_sparse, to_sparse_csr, to_dense), and read the parts. docs/sparse.md lists the operators that
// take sparse tensors; every other one throws a brasa::Error that says to_dense(). Gradients flow to what the values were made
// from, and a sparse leaf's gradient has the leaf's pattern.
namespace brasa {

// brasa::Error for indices that are no matrix of integers, lie outside of `size`, or are not as many as the values. Indices that a
// compiled function is just recording have no values to look at: there, operators check them when they use them.

/// Without a size, the smallest that has all indices. `is_coalesced` promises that the indices ascend and are distinct; brasa::Error
/// if they do not. The values keep their history unless the options ask for a leaf that requires a gradient.
BRASA_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& options = {},
                                   std::optional<bool> is_coalesced = {});
BRASA_API Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                   const TensorOptions& options = {}, std::optional<bool> is_coalesced = {});
/// Without entries; all dimensions are sparse.
BRASA_API Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& options);
/// The indices' values are not looked at.
BRASA_API Tensor _sparse_coo_tensor_unsafe(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                           const TensorOptions& options = {}, std::optional<bool> is_coalesced = {});

/// crow_indices [rows + 1] begins with 0, never falls and ends with nnz; col_indices [nnz]; values [nnz, dense sizes…]. Indices are kept
/// as int64.
BRASA_API Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                   IntArrayRef size, const TensorOptions& options = {});
BRASA_API Tensor sparse_csr_tensor(const Tensor& crow_indices, const Tensor& col_indices, const Tensor& values,
                                   const TensorOptions& options = {});
/// As sparse_csr_tensor; the options' layout, if set, must be kSparseCsr.
BRASA_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                          const Tensor& values, IntArrayRef size, const TensorOptions& options = {});
BRASA_API Tensor sparse_compressed_tensor(const Tensor& compressed_indices, const Tensor& plain_indices,
                                          const Tensor& values, const TensorOptions& options = {});

/// A matrix product of which either matrix may be sparse; sparse only if both are.
BRASA_API Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense);
/// beta * self + alpha * sparse dense.
BRASA_API Tensor _sparse_addmm(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta = 1,
                               const Scalar& alpha = 1);
/// The sum of all entries, or over some dimensions; sparse as long as a sparse dimension stays.
BRASA_API Tensor _sparse_sum(const Tensor& self);
BRASA_API Tensor _sparse_sum(const Tensor& self, IntArrayRef dim);
/// Softmax along a dimension among the entries that there are: the others count as -inf.
BRASA_API Tensor _sparse_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = {});
BRASA_API Tensor _sparse_log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype = {});

}  // namespace brasa
