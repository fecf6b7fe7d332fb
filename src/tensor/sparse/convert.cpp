#include <brasa/autograd.h>
#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "support/error.h"
#include "tensor/sparse/parts.h"

// Between layouts.
namespace brasa::eager::sparse {
namespace {

// Coordinates [dims, n] of positions in a row-major tensor of these sizes.
Tensor unflattened(Tensor flat, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> rows(sizes.size());
  for (size_t d = sizes.size(); d-- > 0;) {
    Scalar size = std::max<int64_t>(sizes[d], 1);
    rows[d] = d ? flat.remainder(size) : flat;
    if (d) flat = flat.floor_divide(size);
  }
  return rows.empty() ? zeros({0, flat.size(0)}, kLong) : stack(rows);
}

}  // namespace

Tensor coalesced(const Tensor& t) {
  const SparseParts& parts = parts_of(t);
  BRASA_CHECK(parts.layout == kSparse, "coalesce expected sparse coordinate tensor layout but got SparseCsr");
  if (parts.coalesced) return t;
  std::vector<int64_t> sizes = leading(t);
  Tensor order, group, indices;
  {
    NoGradGuard guard;
    Tensor sorted, counts;
    std::tie(sorted, order) = flat_index(parts.indices, sizes).sort();
    std::tie(sorted, group, counts) = unique_consecutive(sorted, true);
    indices = unflattened(sorted, sizes);
  }
  Tensor values = add_up(values_of(t).index_select(0, order), group, indices.size(1));
  return make_coo(t.sizes(), indices, values, true);
}

Tensor merged(const Tensor& t) { return is_coo(t) ? coalesced(t) : t; }

Tensor to_coo(const Tensor& t) {
  const SparseParts& parts = parts_of(t);
  if (parts.layout == kSparse) return t;
  return make_coo(t.sizes(), stack({rows_of(t), parts.indices}), values_of(t), parts.coalesced);
}

Tensor to_csr(const Tensor& t) {
  if (is_csr(t)) return t;
  BRASA_CHECK(sparse_dim_of(t) == 2, "to_sparse_csr: expected a sparse tensor with 2 sparse dimensions, got ", t,
              " with ", sparse_dim_of(t));
  Tensor c = coalesced(t);
  Tensor row = coordinate(c, 0), counts = zeros({t.size(0) + 1}, kLong);
  counts.index_add_(0, row + 1, ones({row.size(0)}, kLong));
  return make_csr(t.sizes(), counts.cumsum(0), coordinate(c, 1), values_of(c));
}

Tensor to_dense(const Tensor& t) {
  if (is_csr(t)) return to_dense(to_coo(t));
  std::vector<int64_t> sizes = leading(t);
  return add_up(values_of(t), flat_index(parts_of(t).indices, sizes), product_of(sizes)).reshape(t.sizes());
}

Tensor values_at(const Tensor& g, const Tensor& t) {
  BRASA_CHECK(g.sizes() == t.sizes(), "expected tensors of equal sizes, got ", g, " and ", t);
  const Tensor pattern = to_coo(t);
  std::vector<int64_t> sizes = leading(pattern);
  Tensor flat = flat_index(parts_of(pattern).indices, sizes);
  if (is_sparse(g)) {
    const Tensor other = to_coo(g);
    if (parts_of(other).indices.is_same(parts_of(pattern).indices) && parts_of(other).coalesced)
      return values_of(other);
    Pairs p = pairs(flat_index(parts_of(other).indices, leading(other)), flat);
    return add_up(values_of(other).index_select(0, p.entry), p.wanted, flat.size(0));
  }
  std::vector<int64_t> rows = t.sizes().slice(sizes.size());
  rows.insert(rows.begin(), product_of(sizes));
  return g.reshape(rows).index_select(0, flat);
}

}  // namespace brasa::eager::sparse

namespace brasa {

using namespace eager::sparse;

Tensor Tensor::to_dense(std::optional<DType> dtype, std::optional<bool>) const {
  Tensor out = eager::sparse::is_sparse(*this) ? eager::sparse::to_dense(*this) : *this;
  checked_impl(out);
  return dtype ? out.to(*dtype) : out;
}

Tensor Tensor::to_sparse(int64_t sparse_dim) const {
  if (eager::sparse::is_sparse(*this)) {
    BRASA_CHECK(sparse_dim == sparse_dim_of(*this), "to_sparse: conversion of ", *this, " with ", sparse_dim_of(*this),
                " sparse dimensions to one with ", sparse_dim, " is not supported");
    return to_coo(*this);
  }
  BRASA_CHECK(sparse_dim > 0 || dim() == 0, "to_sparse: sparse_dim must be positive, got ", sparse_dim);
  BRASA_CHECK(sparse_dim >= 0 && sparse_dim <= dim(), "to_sparse: sparse_dim must be at most the dimensions of ", *this,
              ", got ", sparse_dim);
  std::vector<int64_t> lead = sizes().slice(0, static_cast<size_t>(sparse_dim)),
                       rows = sizes().slice(static_cast<size_t>(sparse_dim));
  int64_t count = product_of(lead);
  Tensor indices, flat;
  {
    NoGradGuard guard;
    Tensor set = ne(0);
    if (!rows.empty()) set = set.reshape({count, product_of(rows)}).any(1);
    indices = set.reshape(lead).nonzero().t();
    flat = flat_index(indices, lead);
  }
  rows.insert(rows.begin(), count);
  return make_coo(sizes(), indices, reshape(rows).index_select(0, flat), true);
}

Tensor Tensor::to_sparse() const { return to_sparse(eager::sparse::is_sparse(*this) ? sparse_dim_of(*this) : dim()); }

Tensor Tensor::to_sparse(Layout layout) const {
  BRASA_CHECK(layout != kStrided, "to_sparse: expected a sparse layout, got ", "Strided");
  return layout == kSparse ? to_sparse() : to_sparse_csr();
}

Tensor Tensor::to_sparse_csr(std::optional<int64_t> dense_dim) const {
  int64_t dense = dense_dim.value_or(eager::sparse::is_sparse(*this) ? this->dense_dim() : dim() - 2);
  BRASA_CHECK(dim() - dense == 2 && (dense_dim || dense == 0 || eager::sparse::is_sparse(*this)),
              "to_sparse_csr: expected a matrix, with dense_dim further dimensions (no batches), got ", *this);
  return to_csr(eager::sparse::is_sparse(*this) ? *this : to_sparse(2));
}

Tensor Tensor::to_sparse_coo() const { return to_sparse(); }
Tensor Tensor::coalesce() const { return coalesced(*this); }

Tensor Tensor::sparse_mask(const Tensor& mask) const {
  checked_impl(*this);
  BRASA_CHECK(eager::sparse::is_sparse(mask), "sparse_mask: expected a sparse mask, got ", mask);
  BRASA_CHECK(sizes() == mask.sizes(), "sparse_mask: operands have incompatible sizes; self has size ", sizes().vec(),
              " but mask has size ", mask.sizes().vec());
  return with_values(mask, values_at(*this, mask));
}

}  // namespace brasa
