#include <brasa/factories.h>
#include <brasa/ops_generated.h>

#include "tensor/sparse/table.h"

// Functions of one tensor that leave zeros zero.
namespace brasa::eager::sparse {

Tensor linear(Call& c) { return c.on_values(c.tensor(0)); }

namespace {

Tensor each(Call& c) { return c.on_values(merged(c.tensor(0))); }

// 0 to this power is 0 as well.
Tensor power(Call& c) {
  Scalar exponent = c.number(1);
  if (exponent.isComplex() || exponent.toDouble() <= 0) c.unsupported("the exponent must be greater than 0");
  return each(c);
}

Tensor copied(Call& c) {
  const Tensor& t = c.tensor(0);
  const SparseParts& parts = parts_of(t);
  Tensor out = with_values(t, values_of(t).clone());
  impl_of(out)->sparse->indices = parts.indices.clone();
  if (parts.crow.defined()) impl_of(out)->sparse->crow = parts.crow.clone();
  return out;
}

Tensor copied_from(Call& c) {
  const Tensor &self = c.tensor(0), &from = c.tensor(1);
  if (is_sparse(self) && !is_sparse(from)) c.unsupported();
  if (self.sizes() != from.sizes()) c.unsupported("the sizes differ");
  return is_sparse(self) ? from.to(self.scalar_type()) : to_dense(from).to(self.scalar_type());
}

// zeros_like and zero.
Tensor zeros_of(Call& c) {
  const Tensor& t = c.tensor(0);
  const SparseParts& parts = parts_of(t);
  DType dtype = t.scalar_type();
  for (size_t i = 1; i < c.args().size(); ++i) dtype = c.dtype(i).value_or(dtype);
  std::vector<int64_t> rows = parts.values.sizes();
  rows[0] = 0;
  Tensor values = zeros(rows, dtype), none = zeros({parts.sparse_dim, 0}, kLong);
  Tensor out = make_coo(t.sizes(), none, values, true);
  return parts.layout == kSparse ? out : to_csr(out);
}

Tensor densified(Call& c) { return c.with(0, c.tensor(0).to_dense(), 1, c.tensor(1).to_dense()); }

constexpr Entry kEntries[] = {
    {"aten::neg", linear},
    {"aten::negative", linear},
    {"aten::positive", linear},
    {"aten::deg2rad", linear},
    {"aten::rad2deg", linear},
    {"aten::alias", linear},
    {"aten::_to_copy", linear},
    {"aten::abs", each},
    {"aten::absolute", each},
    {"aten::asin", each},
    {"aten::arcsin", each},
    {"aten::asinh", each},
    {"aten::arcsinh", each},
    {"aten::atan", each},
    {"aten::arctan", each},
    {"aten::atanh", each},
    {"aten::arctanh", each},
    {"aten::ceil", each},
    {"aten::erf", each},
    {"aten::erfinv", each},
    {"aten::expm1", each},
    {"aten::floor", each},
    {"aten::frac", each},
    {"aten::isinf", each},
    {"aten::isnan", each},
    {"aten::isneginf", each},
    {"aten::isposinf", each},
    {"aten::log1p", each},
    {"aten::nan_to_num", each},
    {"aten::relu", each},
    {"aten::round", each},
    {"aten::round.decimals", each},
    {"aten::sgn", each},
    {"aten::sign", each},
    {"aten::signbit", each},
    {"aten::sin", each},
    {"aten::sinh", each},
    {"aten::sqrt", each},
    {"aten::square", each},
    {"aten::tan", each},
    {"aten::tanh", each},
    {"aten::trunc", each},
    {"aten::fix", each},
    {"aten::pow.Tensor_Scalar", power},
    {"aten::clone", copied},
    {"aten::copy", copied_from},
    {"aten::zeros_like", zeros_of},
    {"aten::zero", zeros_of},
    {"aten::isclose", densified},
};

}  // namespace

std::span<const Entry> elementwise_entries() { return kEntries; }

}  // namespace brasa::eager::sparse
