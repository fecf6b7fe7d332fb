#pragma once

#include <vector>

#include "tensor/sparse/sparse.h"

// What the files of this folder share: making sparse tensors, and their parts.
namespace brasa::eager::sparse {

/// brasa::Error for a tensor that is not sparse.
const SparseParts& parts_of(const Tensor& t);
inline bool is_coo(const Tensor& t) { return is_sparse(t) && impl_of(t)->sparse->layout == kSparse; }
inline bool is_csr(const Tensor& t) { return is_sparse(t) && impl_of(t)->sparse->layout == kSparseCsr; }
inline int64_t nnz_of(const Tensor& t) { return parts_of(t).values.size(0); }
inline int64_t sparse_dim_of(const Tensor& t) { return parts_of(t).sparse_dim; }
/// The sparse dimensions' sizes.
inline std::vector<int64_t> leading(const Tensor& t) { return t.sizes().slice(0, sparse_dim_of(t)); }

/// The values, with what leads a gradient back to a leaf.
Tensor values_of(const Tensor& t);
/// The row of each entry of a CSR tensor.
Tensor rows_of(const Tensor& t);
/// One coordinate of each entry.
Tensor coordinate(const Tensor& t, int64_t dim);

// Without checks of the indices' values.
Tensor make_coo(std::vector<int64_t> sizes, Tensor indices, Tensor values, bool coalesced);
Tensor make_csr(std::vector<int64_t> sizes, Tensor crow, Tensor columns, Tensor values);

Tensor to_coo(const Tensor& t);
Tensor to_csr(const Tensor& t);
Tensor to_dense(const Tensor& t);
Tensor coalesced(const Tensor& t);
/// Of any layout: no two entries of one index.
Tensor merged(const Tensor& t);

/// 0, 1, … n - 1.
Tensor counting(int64_t n);
/// Positions of the true elements of a vector.
Tensor positions(const Tensor& mask);
/// One number for each column of indices [dims, nnz]: its position in a row-major tensor of these sizes.
Tensor flat_index(const Tensor& indices, IntArrayRef sizes);
/// zeros with rows added: out[group[e]] += values[e].
Tensor add_up(const Tensor& values, const Tensor& group, int64_t groups);
/// The pairs (p, e) with key[e] == wanted[p], ordered by p.
struct Pairs {
  Tensor wanted, entry;
};
Pairs pairs(const Tensor& key, const Tensor& wanted);
int64_t product_of(IntArrayRef sizes);

}  // namespace brasa::eager::sparse
