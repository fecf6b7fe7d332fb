#include <brasa/autograd.h>
#include <brasa/factories.h>
#include <brasa/ops_generated.h>
#include <brasa/sparse.h>

#include <algorithm>

#include "support/error.h"
#include "tensor/sparse/table.h"

// Sums, norms, and softmax among the entries.
namespace brasa::eager::sparse {
namespace {

// dims are those of the sparse tensor.
Tensor sum_of(const Tensor& t, const std::vector<int64_t>& dims, bool keep, std::optional<DType> dtype) {
  const SparseParts& parts = parts_of(t);
  std::vector<int64_t> rows, inner, sizes;
  auto summed = [&](int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); };
  for (int64_t d = 0; d < t.dim(); ++d) {
    bool gone = summed(d);
    if (!gone || keep) sizes.push_back(gone ? 1 : t.size(d));
    if (gone && d >= parts.sparse_dim) inner.push_back(d - parts.sparse_dim + 1);
    if (!gone && d < parts.sparse_dim) rows.push_back(d);
  }
  Tensor values = values_of(t);
  if (rows.empty()) {
    inner.insert(inner.begin(), 0);
    return values.sum(IntArrayRef(inner), false, dtype).reshape(sizes);
  }
  if (!inner.empty() || dtype) values = inner.empty() ? values.to(*dtype) : values.sum(IntArrayRef(inner), keep, dtype);
  if (!dtype && is_integral(values.scalar_type(), true)) values = values.to(kLong);
  std::vector<Tensor> indices;
  for (int64_t d = 0; d < parts.sparse_dim; ++d) {
    Tensor row = parts.indices.select(0, d);
    if (!summed(d)) indices.push_back(row);
    if (summed(d) && keep) indices.push_back(zeros_like(row));
  }
  return coalesced(make_coo(sizes, stack(indices), values, false));
}

Tensor softmax_of(Call& c, bool log) {
  const Tensor& t = c.tensor(0);
  int64_t dim = c.dim(1);
  std::optional<DType> dtype = c.dtype(2);
  if (!is_coo(t)) c.unsupported("expected coordinate format");
  const Tensor s = coalesced(t);
  const SparseParts& parts = parts_of(s);
  Tensor values = values_of(s);
  if (dtype) values = values.to(*dtype);
  if (dim >= parts.sparse_dim) {
    int64_t d = dim - parts.sparse_dim + 1;
    return with_values(s, log ? values.log_softmax(d) : values.softmax(d));
  }
  // Entries that differ in this index alone.
  std::vector<Tensor> others;
  std::vector<int64_t> sizes;
  for (int64_t d = 0; d < parts.sparse_dim; ++d)
    if (d != dim) {
      others.push_back(parts.indices.select(0, d));
      sizes.push_back(t.size(d));
    }
  Tensor flat = others.empty() ? zeros_like(parts.indices.select(0, 0)) : flat_index(stack(others), sizes);
  auto [unique, group, counts] = _unique2(flat, true, true);
  int64_t groups = unique.size(0);
  std::vector<int64_t> rows = values.sizes();
  rows[0] = groups;
  Tensor most;
  {
    NoGradGuard guard;
    most = full(rows, -INFINITY, values.options()).index_reduce(0, group, values.detach(), "amax");
  }
  Tensor shifted = values - most.index_select(0, group), e = shifted.exp();
  Tensor total = add_up(e, group, groups);
  return with_values(s, log ? shifted - total.log().index_select(0, group) : e / total.index_select(0, group));
}

}  // namespace

Tensor forms::sum(Call& c) { return c.with(0, values_of(c.tensor(0))); }

Tensor forms::sum_over(Call& c) {
  const Tensor& t = c.tensor(0);
  std::vector<int64_t> dims = c.integers(1);
  if (dims.empty())
    for (int64_t d = 0; d < t.dim(); ++d) dims.push_back(d);
  for (int64_t& d : dims) d = c.wrapped(d, t.dim());
  Tensor out = sum_of(to_coo(t), dims, c.flag(2), c.dtype(3));
  return is_csr(t) && is_sparse(out) && out.dim() == 2 ? to_csr(out) : out;
}

// Of all elements. Zeros add nothing to a norm of positive order.
Tensor forms::norm(Call& c) {
  if (c.has(1) && (c.number(1).isComplex() || c.number(1).toDouble() <= 0)) c.unsupported("the order must be positive");
  return c.with(0, values_of(merged(c.tensor(0))).flatten());
}

Tensor forms::softmax(Call& c) { return softmax_of(c, false); }

Tensor forms::log_softmax(Call& c) { return softmax_of(c, true); }

Tensor forms::any(Call& c) { return values_of(c.tensor(0)).any(); }

}  // namespace brasa::eager::sparse

namespace brasa {

Tensor _sparse_sum(const Tensor& self) { return self.sum(); }
Tensor _sparse_sum(const Tensor& self, IntArrayRef dim) { return self.sum(dim); }
Tensor _sparse_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) { return self.softmax(dim, dtype); }
Tensor _sparse_log_softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return self.log_softmax(dim, dtype);
}

}  // namespace brasa
