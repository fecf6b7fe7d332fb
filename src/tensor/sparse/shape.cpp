#include <brasa/autograd.h>
#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include <algorithm>

#include "support/error.h"
#include "tensor/sparse/table.h"

// Other sizes, and parts of a tensor. Of a dense dimension d these are operators on dimension d - sparse_dim + 1 of the values.
namespace brasa::eager::sparse {
namespace {

struct Parts {
  explicit Parts(const Tensor& t)
      : sizes(t.sizes()), dims(sparse_dim_of(t)), indices(parts_of(t).indices), values(values_of(t)) {}
  // Where the values have a dense dimension.
  int64_t inner(int64_t dim) const { return dim - dims + 1; }
  std::vector<int64_t> sizes;
  int64_t dims;
  Tensor indices, values;
};

Tensor without_row(const Tensor& indices, int64_t dim) {
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < indices.size(0); ++d)
    if (d != dim) rows.push_back(indices.select(0, d));
  return stack(rows);
}

Tensor with_row(const Tensor& indices, int64_t dim, const Tensor& row) {
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < indices.size(0); ++d) rows.push_back(d == dim ? row : indices.select(0, d));
  return stack(rows);
}

Tensor permuted(Call& c, const Tensor& t, const std::vector<int64_t>& order) {
  Parts p(t);
  std::vector<Tensor> rows;
  std::vector<int64_t> inner = {0}, sizes;
  bool same = true;
  for (int64_t k = 0; k < t.dim(); ++k) {
    int64_t from = order[k];
    if ((from < p.dims) != (k < p.dims)) c.unsupported("sparse and dense dimensions cannot change places");
    sizes.push_back(p.sizes[from]);
    if (k < p.dims) {
      rows.push_back(p.indices.select(0, from));
      same = same && from == k;
    } else {
      inner.push_back(p.inner(from));
    }
  }
  Tensor values = inner.size() > 1 ? p.values.permute(inner) : p.values;
  return make_coo(sizes, same ? p.indices : stack(rows), values, same && parts_of(t).coalesced);
}

Tensor swapped(Call& c, int64_t a, int64_t b) {
  const Tensor t = to_coo(c.tensor(0));
  std::vector<int64_t> order(t.dim());
  for (int64_t d = 0; d < t.dim(); ++d) order[d] = d == a ? b : d == b ? a : d;
  return permuted(c, t, order);
}

Tensor unsqueezed(Call& c, const Tensor& of, int64_t dim) {
  const Tensor t = to_coo(of);
  Parts p(t);
  if (dim < -t.dim() - 1 || dim > t.dim()) c.unsupported("the dimension is out of range");
  dim += dim < 0 ? t.dim() + 1 : 0;
  p.sizes.insert(p.sizes.begin() + dim, 1);
  if (dim > p.dims) return make_coo(p.sizes, p.indices, p.values.unsqueeze(p.inner(dim)), parts_of(t).coalesced);
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < p.dims; ++d) rows.push_back(p.indices.select(0, d));
  rows.insert(rows.begin() + dim, zeros({p.indices.size(1)}, kLong));
  return make_coo(p.sizes, stack(rows), p.values, parts_of(t).coalesced);
}

Tensor part(Call& c, int64_t dim, int64_t begin, int64_t end) {
  const Tensor t = to_coo(c.tensor(0));
  Parts p(t);
  p.sizes[dim] = end - begin;
  if (dim >= p.dims)
    return make_coo(p.sizes, p.indices, p.values.slice(p.inner(dim), begin, end), parts_of(t).coalesced);
  Tensor row = p.indices.select(0, dim), kept = positions(row.ge(begin).logical_and(row.lt(end)));
  return make_coo(p.sizes, with_row(p.indices, dim, row - begin).index_select(1, kept), p.values.index_select(0, kept),
                  parts_of(t).coalesced);
}

Tensor joined(Call& c, std::vector<Tensor> tensors, int64_t dim) {
  for (Tensor& t : tensors) {
    if (!is_sparse(t)) c.unsupported("expected sparse tensors alone");
    t = to_coo(t);
  }
  const Tensor& first = tensors[0];
  int64_t rank = first.dim(), dims = sparse_dim_of(first), size = 0;
  dim = c.wrapped(dim, rank);
  if (dim >= dims) c.unsupported("tensors are joined along sparse dimensions");
  std::vector<Tensor> indices, values;
  DType dtype = first.scalar_type();
  for (const Tensor& t : tensors) dtype = promote_types(dtype, t.scalar_type());
  for (const Tensor& t : tensors) {
    bool fits = t.dim() == rank && sparse_dim_of(t) == dims;
    for (int64_t d = 0; fits && d < rank; ++d) fits = d == dim || t.size(d) == first.size(d);
    BRASA_CHECK(fits, "cat: expected sparse tensors of equal sizes but in dimension ", dim, ", got ", first, " and ",
                t);
    Tensor own = parts_of(t).indices;
    indices.push_back(size ? with_row(own, dim, own.select(0, dim) + size) : own);
    values.push_back(values_of(t).to(dtype));
    size += t.size(dim);
  }
  std::vector<int64_t> sizes = first.sizes();
  sizes[dim] = size;
  return make_coo(sizes, brasa::cat(indices, 1), brasa::cat(values), false);
}

}  // namespace

Tensor forms::transpose(Call& c) { return swapped(c, c.dim(1), c.dim(2)); }

Tensor forms::t(Call& c) {
  if (c.tensor(0).dim() > 2) c.unsupported("t() expects at most 2 dimensions");
  return c.tensor(0).dim() < 2 ? c.tensor(0) : swapped(c, 0, 1);
}

Tensor forms::permute(Call& c) {
  const Tensor t = to_coo(c.tensor(0));
  std::vector<int64_t> order = c.integers(1), sorted;
  for (int64_t& d : order) d += d < 0 ? t.dim() : 0;
  sorted = order;
  std::sort(sorted.begin(), sorted.end());
  for (int64_t d = 0; d < static_cast<int64_t>(sorted.size()); ++d)
    if (sorted[d] != d) c.unsupported("expected each dimension once");
  if (static_cast<int64_t>(order.size()) != t.dim()) c.unsupported("expected each dimension once");
  return permuted(c, t, order);
}

Tensor forms::unsqueeze(Call& c) { return unsqueezed(c, c.tensor(0), c.integer(1)); }

Tensor forms::select(Call& c) {
  const Tensor t = to_coo(c.tensor(0));
  int64_t dim = c.dim(1), index = c.integer(2);
  Parts p(t);
  if (index < -p.sizes[dim] || index >= p.sizes[dim])
    fail_index(str("select(): index ", index, " out of range for ", t, " at dimension ", dim));
  index += index < 0 ? p.sizes[dim] : 0;
  std::vector<int64_t> sizes = p.sizes;
  sizes.erase(sizes.begin() + dim);
  if (dim >= p.dims) return make_coo(sizes, p.indices, p.values.select(p.inner(dim), index), parts_of(t).coalesced);
  Tensor kept = positions(p.indices.select(0, dim).eq(index)), values = p.values.index_select(0, kept);
  if (p.dims == 1) return values.sum(IntArrayRef(0)).to(t.scalar_type());
  return make_coo(sizes, without_row(p.indices, dim).index_select(1, kept), values, parts_of(t).coalesced);
}

Tensor forms::narrow(Call& c) {
  int64_t dim = c.dim(1), size = c.tensor(0).size(dim), begin = c.integer(2), length = c.integer(3);
  begin += begin < 0 ? size : 0;
  if (begin < 0 || length < 0 || begin + length > size) c.unsupported("start and length do not fit the dimension");
  return part(c, dim, begin, begin + length);
}

Tensor forms::slice(Call& c) {
  int64_t dim = c.dim(1), size = c.tensor(0).size(dim);
  if (c.integer(4) != 1) c.unsupported("the step must be 1");
  auto at = [&](size_t i, int64_t otherwise) {
    int64_t v = c.has(i) ? c.integer(i) : otherwise;
    return std::clamp<int64_t>(v < 0 ? v + size : v, 0, size);
  };
  int64_t begin = at(2, 0);
  return part(c, dim, begin, std::max(begin, at(3, size)));
}

Tensor forms::index_select(Call& c) {
  const Tensor t = to_coo(c.tensor(0));
  int64_t dim = c.dim(1);
  const Tensor& index = c.tensor(2);
  Parts p(t);
  if (is_sparse(index) || index.dim() > 1 || !is_integral(index.scalar_type()))
    c.unsupported("expected a vector of indices");
  Tensor wanted = index.dim() == 0 ? index.unsqueeze(0) : index;
  int64_t size = p.sizes[dim];
  p.sizes[dim] = wanted.size(0);
  if (dim >= p.dims) {
    Tensor values = p.values.index_select(p.inner(dim), wanted);
    return make_coo(p.sizes, p.indices, values, parts_of(t).coalesced);
  }
  BRASA_CHECK(wanted.lt(0).logical_or(wanted.ge(size)).any().item<bool>() == false,
              "index_select(): index out of range for ", t, " at dimension ", dim);
  Pairs found = pairs(p.indices.select(0, dim), wanted.to(kLong));
  Tensor indices = with_row(p.indices.index_select(1, found.entry), dim, found.wanted);
  return make_coo(p.sizes, indices, p.values.index_select(0, found.entry), false);
}

Tensor forms::cat(Call& c) { return joined(c, c.tensors(0), c.integer(1)); }

Tensor forms::stack(Call& c) {
  std::vector<Tensor> tensors = c.tensors(0);
  int64_t dim = c.integer(1);
  if (dim < 0) dim += tensors[0].dim() + 1;
  for (Tensor& t : tensors) {
    if (!is_sparse(t)) c.unsupported("expected sparse tensors alone");
    t = unsqueezed(c, t, dim);
  }
  return joined(c, tensors, dim);
}

}  // namespace brasa::eager::sparse
