#include <brasa/factories.h>
#include <brasa/ops_generated.h>
#include <brasa/sparse.h>

#include "support/error.h"
#include "tensor/sparse/table.h"

// Products of matrices.
namespace brasa::eager::sparse {
namespace {

bool is_matrix(const Tensor& t) { return t.dim() == 2 && (!is_sparse(t) || sparse_dim_of(t) == 2); }

// Σ_e values[e] dense[column[e]] in row[e].
Tensor multiplied(const Tensor& row, const Tensor& column, const Tensor& values, const Tensor& dense, int64_t rows) {
  DType t = values.scalar_type();
  if (!is_floating(t)) return add_up(values.unsqueeze(1) * dense.index_select(0, column), row, rows);
  if (is_reduced_floating(t)) return multiplied(row, column, values.to(kFloat), dense.to(kFloat), rows).to(t);
  return call_one("prim::sparse_mm", {row, column, values, dense, IntArrayRef(rows)});
}

void check_product(const Call& c, const Tensor& a, const Tensor& b) {
  if (!is_matrix(a) || !is_matrix(b)) c.unsupported("expected matrices, sparse ones with 2 sparse dimensions");
  BRASA_CHECK(a.size(1) == b.size(0), c.op().row().name(), ": mat1 and mat2 shapes cannot be multiplied (", a.size(0),
              "x", a.size(1), " and ", b.size(0), "x", b.size(1), ")");
  BRASA_CHECK(a.scalar_type() == b.scalar_type(), c.op().row().name(), ": expected operands of one dtype, got ", a,
              " and ", b);
}

// Every entry of a with every one of b that it meets.
Tensor both_sparse(const Tensor& a, const Tensor& b) {
  Pairs p = pairs(coordinate(b, 0), coordinate(a, 1));
  Tensor values = values_of(a).index_select(0, p.wanted) * values_of(b).index_select(0, p.entry);
  Tensor indices = stack({coordinate(a, 0).index_select(0, p.wanted), coordinate(b, 1).index_select(0, p.entry)});
  Tensor out = coalesced(make_coo({a.size(0), b.size(1)}, indices, values, false));
  return is_csr(a) ? to_csr(out) : out;
}

Tensor matrices(const Call& c, const Tensor& a, const Tensor& b) {
  check_product(c, a, b);
  if (is_sparse(a) && is_sparse(b)) return both_sparse(a, b);
  if (is_sparse(a)) return multiplied(coordinate(a, 0), coordinate(a, 1), values_of(a), b, a.size(0));
  return multiplied(coordinate(b, 1), coordinate(b, 0), values_of(b), a.t(), b.size(1)).t();
}

Tensor times_vector(const Call& c, const Tensor& a, const Tensor& v) {
  if (is_sparse(v) || v.dim() != 1) c.unsupported("expected a matrix and a dense vector");
  return matrices(c, a, v.unsqueeze(1)).squeeze(1);
}

// beta * self + alpha * product; nothing of self where beta is 0.
Tensor scaled_sum(const Tensor& self, Tensor product, const Scalar& beta, const Scalar& alpha) {
  auto is = [](const Scalar& s, double v) { return !s.isComplex() && s.toDouble() == v; };
  if (!is(alpha, 1)) product = product * alpha;
  if (is(beta, 0)) return is_sparse(product) ? product : product + zeros(self.sizes(), product.options());
  Tensor first = is(beta, 1) ? self : self * beta;
  return is_sparse(first) && !is_sparse(product) ? product + first : first + product;
}

}  // namespace

Tensor forms::mm(Call& c) { return matrices(c, c.tensor(0), c.tensor(1)); }

Tensor forms::mv(Call& c) { return times_vector(c, c.tensor(0), c.tensor(1)); }

// One block-diagonal matrix with the batch's matrices as blocks.
Tensor forms::bmm(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (!is_coo(a) || is_sparse(b) || a.dim() != 3 || b.dim() != 3 || sparse_dim_of(a) != 3)
    c.unsupported("expected a batch of sparse matrices with 3 sparse dimensions, and a dense batch");
  BRASA_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1) && a.scalar_type() == b.scalar_type(),
              "bmm: expected batches of fitting matrices of one dtype, got ", a, " and ", b);
  int64_t n = a.size(0), rows = a.size(1), inner = a.size(2), columns = b.size(2);
  Tensor batch = coordinate(a, 0);
  Tensor out = multiplied(batch * rows + coordinate(a, 1), batch * inner + coordinate(a, 2), values_of(a),
                          b.reshape({n * inner, columns}), n * rows);
  return out.reshape({n, rows, columns});
}

Tensor forms::matmul(Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  if (a.dim() == 2 && b.dim() == 2) return matrices(c, a, b);
  if (a.dim() == 2 && b.dim() == 1) return mv(c);
  if (a.dim() == 3 && b.dim() == 3) return bmm(c);
  if (a.dim() >= 1 && !is_sparse(a) && is_matrix(b)) {
    // The dimensions in front of the last become one.
    Tensor flat = matrices(c, a.reshape({-1, a.size(-1)}), b);
    std::vector<int64_t> sizes = a.sizes();
    sizes.back() = b.size(1);
    return flat.reshape(sizes);
  }
  c.unsupported();
}

Tensor forms::addmm(Call& c) {
  Tensor product = matrices(c, c.tensor(1), c.tensor(2));
  return scaled_sum(c.tensor(0), product, c.number(3), c.number(4));
}

Tensor forms::addmv(Call& c) {
  return scaled_sum(c.tensor(0), times_vector(c, c.tensor(1), c.tensor(2)), c.number(3), c.number(4));
}

Tensor forms::linear_layer(Call& c) {
  const Tensor &x = c.tensor(0), &w = c.tensor(1);
  if (is_sparse(x) || !is_matrix(w) || x.dim() < 1)
    c.unsupported("expected a dense input and a sparse matrix of weights");
  BRASA_CHECK(x.size(-1) == w.size(1) && x.scalar_type() == w.scalar_type(), "linear: input ", x, " and weight ", w,
              " do not fit");
  Tensor flat = x.reshape({-1, x.size(-1)});
  Tensor out = multiplied(coordinate(w, 0), coordinate(w, 1), values_of(w), flat.t(), w.size(0)).t();
  std::vector<int64_t> sizes = x.sizes();
  sizes.back() = w.size(0);
  out = out.reshape(sizes);
  return c.has(2) ? out + c.tensor(2) : out;
}

}  // namespace brasa::eager::sparse

namespace brasa {

Tensor _sparse_mm(const Tensor& sparse, const Tensor& dense) { return mm(sparse, dense); }
Tensor _sparse_addmm(const Tensor& self, const Tensor& sparse, const Tensor& dense, const Scalar& beta,
                     const Scalar& alpha) {
  return addmm(self, sparse, dense, beta, alpha);
}

}  // namespace brasa
