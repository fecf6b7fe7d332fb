#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "tensor/sparse/table.h"

// Functions of one tensor that leave zeros zero.
namespace brasa::eager::sparse {

// Of a sum it is the sum of what it is of the terms: entries of one index need not be merged.
Tensor forms::linear(Call& c) { return c.on_values(c.tensor(0)); }

Tensor forms::each(Call& c) { return c.on_values(merged(c.tensor(0))); }

// 0 to this power is 0 as well.
Tensor forms::power(Call& c) {
  Scalar exponent = c.number(1);
  if (exponent.isComplex() || exponent.toDouble() <= 0) c.unsupported("the exponent must be greater than 0");
  return each(c);
}

Tensor forms::copy(Call& c) {
  const Tensor& t = c.tensor(0);
  const SparseParts& parts = parts_of(t);
  Tensor out = with_values(t, values_of(t).clone());
  impl_of(out)->sparse->indices = parts.indices.clone();
  if (parts.crow.defined()) impl_of(out)->sparse->crow = parts.crow.clone();
  return out;
}

Tensor forms::copy_from(Call& c) {
  const Tensor &self = c.tensor(0), &from = c.tensor(1);
  if (is_sparse(self) && !is_sparse(from)) c.unsupported();
  if (self.sizes() != from.sizes()) c.unsupported("the sizes differ");
  return is_sparse(self) ? from.to(self.scalar_type()) : to_dense(from).to(self.scalar_type());
}

// zeros_like and zero; new_zeros, which has sizes.
Tensor forms::zeros(Call& c) {
  const Tensor& t = c.tensor(0);
  if (c.args().size() > 1 && c.args()[1].kind == CallArg::Kind::Ints) {
    IntArrayRef sizes(c.args()[1].ints, c.args()[1].size);
    return without_entries(sizes, t.options().dtype(c.dtype(2).value_or(t.scalar_type())));
  }
  const SparseParts& parts = parts_of(t);
  DType dtype = t.scalar_type();
  for (size_t i = 1; i < c.args().size(); ++i) dtype = c.dtype(i).value_or(dtype);
  std::vector<int64_t> rows = parts.values.sizes();
  rows[0] = 0;
  Tensor values = brasa::zeros(rows, dtype), none = brasa::zeros({parts.sparse_dim, 0}, kLong);
  Tensor out = make_coo(t.sizes(), none, values, true);
  return parts.layout == kSparse ? out : to_csr(out);
}

Tensor forms::densified(Call& c) { return c.with(0, c.tensor(0).to_dense(), 1, c.tensor(1).to_dense()); }

}  // namespace brasa::eager::sparse
