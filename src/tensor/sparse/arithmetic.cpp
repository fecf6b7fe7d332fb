#include <brasa/autograd.h>
#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "support/error.h"
#include "tensor/sparse/table.h"

// Sums and element-wise products.
namespace brasa::eager::sparse {
namespace {

bool is_scalar(const Tensor& t) { return !is_sparse(t) && t.dim() == 0; }

Tensor flat(const Tensor& coo) { return flat_index(parts_of(coo).indices, leading(coo)); }

void check_sizes(const Call& c, const Tensor& a, const Tensor& b) {
  BRASA_CHECK(a.sizes() == b.sizes(), c.op().row().name(), ": expected sparse operands of equal sizes, got ", a,
              " and ", b);
}

// a + alpha * b.
Tensor added(Call& c, const Tensor& a, const Tensor& b, const Scalar& alpha) {
  bool plain = alpha.isIntegral(true) && alpha.toLong() == 1;
  if (!is_sparse(a)) {
    if (a.sizes() == b.sizes()) {
      Tensor wide = a.to(result_type(a, values_of(b)), false, true);
      add_into(wide, b, alpha);
      return wide;
    }
    return brasa::add(a, to_dense(b), alpha);
  }
  if (!is_sparse(b)) c.unsupported("the first operand must be the dense one");
  check_sizes(c, a, b);
  if (is_csr(a) || is_csr(b)) {
    if (is_csr(a) && is_csr(b) && parts_of(a).indices.is_same(parts_of(b).indices) &&
        parts_of(a).crow.is_same(parts_of(b).crow))
      return with_values(a, brasa::add(values_of(a), values_of(b), alpha));
    Tensor out = added(c, to_coo(a), to_coo(b), alpha);
    return is_csr(a) ? to_csr(out) : out;
  }
  const SparseParts &pa = parts_of(a), &pb = parts_of(b);
  if (pa.sparse_dim != pb.sparse_dim) c.unsupported("the numbers of sparse dimensions differ");
  if (pa.indices.is_same(pb.indices)) return with_values(a, brasa::add(values_of(a), values_of(b), alpha));
  Tensor vb = values_of(b);
  if (!plain) vb = vb * alpha;
  DType t = promote_types(a.scalar_type(), b.scalar_type());
  Tensor values = cat({values_of(a).to(t), vb.to(t)}), indices = cat({pa.indices, pb.indices}, 1);
  return make_coo(a.sizes(), indices, values, values.size(0) < 2);
}

// The entries that both have; those of one index are multiplied with each other.
Tensor both(Call& c, const Tensor& a, const Tensor& b) {
  check_sizes(c, a, b);
  if (is_csr(a)) return to_csr(both(c, to_coo(a), to_coo(b)));
  if (is_csr(b)) return both(c, a, to_coo(b));
  const SparseParts &pa = parts_of(a), &pb = parts_of(b);
  if (pa.sparse_dim != pb.sparse_dim) c.unsupported("the numbers of sparse dimensions differ");
  if (pa.coalesced && pa.indices.is_same(pb.indices)) return with_values(a, values_of(a) * values_of(b));
  Pairs p = pairs(flat(b), flat(a));
  Tensor values = values_of(a).index_select(0, p.wanted) * values_of(b).index_select(0, p.entry);
  return make_coo(a.sizes(), pa.indices.index_select(1, p.wanted), values, pa.coalesced && pb.coalesced);
}

}  // namespace

Tensor forms::add(Call& c) { return added(c, c.tensor(0), c.tensor(1), c.number(2)); }

Tensor forms::sub(Call& c) { return added(c, c.tensor(0), c.tensor(1), negated(c.number(2))); }

Tensor forms::mul(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (is_sparse(a) && is_sparse(b)) return both(c, a, b);
  const Tensor &s = is_sparse(a) ? a : b, &d = is_sparse(a) ? b : a;
  if (is_scalar(d)) return with_values(s, values_of(s) * d);
  return with_values(s, values_of(s) * values_at(d.expand(s.sizes()), s));
}

Tensor forms::div(Call& c) {
  if (!is_sparse(c.tensor(0)) || !is_scalar(c.tensor(1)))
    c.unsupported("a sparse tensor can only be divided by a number or a dense tensor without dimensions");
  // Rounded parts of a sum do not add up.
  return c.has(2) ? c.on_values(merged(c.tensor(0))) : linear(c);
}

Scalar negated(const Scalar& s) {
  if (s.isComplex()) return -s.toComplexDouble();
  return s.isFloatingPoint() ? Scalar(-s.toDouble()) : Scalar(-s.toLong());
}

void add_into(const Tensor& dense, const Tensor& sparse, const Scalar& alpha) {
  const Tensor s = to_coo(sparse);
  Tensor values = values_of(s).to(dense.scalar_type());
  std::vector<int64_t> lead = leading(s);
  if (lead.size() == 1) {
    dense.index_add_(0, parts_of(s).indices.select(0, 0), values, alpha);
    return;
  }
  std::vector<int64_t> rows = dense.sizes().slice(lead.size());
  rows.insert(rows.begin(), product_of(lead));
  if (dense.is_contiguous()) {
    dense.view(rows).index_add_(0, flat(s), values, alpha);
  } else {
    dense.copy_(dense.reshape(rows).index_add(0, flat(s), values, alpha).reshape(dense.sizes()));
  }
}

}  // namespace brasa::eager::sparse
