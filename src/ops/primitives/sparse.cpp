#include <complex>

#include "ops/algebra.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/primitives/rules.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

bool may_equal(Expr a, Expr b) { return ir::provably_equal(a, b).value_or(true); }

Value product(Value row, Value column, Value values, Value dense, Expr rows) {
  return call("prim::sparse_mm", {row, column, values, dense, Arg(std::vector<Expr>{rows})});
}

std::vector<Type> product_type(const Args& args) {
  const Type &row = operand(args, 0), &column = operand(args, 1), &values = operand(args, 2), &dense = operand(args, 3);
  BRASA_CHECK(row.rank() == 1 && column.rank() == 1 && values.rank() == 1 && dense.rank() == 2 &&
                  row.dtype == DType::Int64 && column.dtype == DType::Int64 &&
                  may_equal(row.shape[0], values.shape[0]) && may_equal(column.shape[0], values.shape[0]),
              "sparse_mm: expected int64 rows and columns, a value for each and a matrix, got ", row, ", ", column,
              ", ", values, " and ", dense);
  BRASA_CHECK(values.dtype == dense.dtype && (dense.dtype == DType::Float32 || dense.dtype == DType::Float64),
              "sparse_mm: expected float32 or float64 values and a matrix of that dtype, got ", values, " and ", dense);
  const Shape& count = args[4].get<Shape>();
  BRASA_CHECK(count.size() == 1, "sparse_mm: expected one number of rows, got ", count);
  return {{dense.dtype, {count[0], dense.shape[1]}, false}};
}

std::vector<Array> product_eval(const Node& n, std::span<const Array* const> in) {
  Array out = result_array(n), wide = make_array(DType::Float64, out.shape);
  int64_t rows = out.shape[0], columns = out.shape[1], inner = in[3]->shape[0];
  for (int64_t i = 0; i < wide.numel(); ++i) set(wide, i, 0);
  for (int64_t e = 0; e < in[2]->numel(); ++e) {
    int64_t r = get_int(*in[0], e), c = get_int(*in[1], e);
    BRASA_CHECK(r >= 0 && r < rows && c >= 0 && c < inner, "sparse_mm: index (", r, ", ", c,
                ") is out of range for a matrix of shape [", rows, ", ", inner, "]");
    for (int64_t j = 0; j < columns; ++j)
      set(wide, r * columns + j, get(wide, r * columns + j) + get(*in[2], e) * get(*in[3], c * columns + j));
  }
  for (int64_t i = 0; i < out.numel(); ++i) set(out, i, get(wide, i));
  return {std::move(out)};
}

// With A = Σ_e values[e] at (row[e], column[e]): d dense = Aᵀ ct, d values[e] = ⟨ct[row[e]], dense[column[e]]⟩.
Value product_transposed(size_t i, const Node& n, Value ct) {
  Value row = n.arg<Value>(0), column = n.arg<Value>(1), values = n.arg<Value>(2), dense = n.arg<Value>(3);
  if (i == 3) return product(column, row, values, ct, size_of(dense, 0));
  if (i != 2) return {};
  // Sizes that are equal may be spelled differently.
  row = prim::reshape(row, shape_of(values));
  column = prim::reshape(column, shape_of(values));
  return prim::reduce(prim::binary("mul", prim::gather(ct, {row}, {0}), prim::gather(dense, {column}, {0})), {1},
                      "add");
}

// One block-diagonal matrix with the calls' matrices as blocks.
std::vector<Value> product_batched(const Node& n, std::span<const Value> in, const std::vector<bool>& mapped,
                                   Expr count) {
  Expr rows = n.arg<std::vector<Expr>>(4).at(0), inner = size_of(in[3], mapped[3] ? 1 : 0),
       columns = size_of(in[3], mapped[3] ? 2 : 1);
  auto repeated = [&](size_t i) { return with_mapped(in[i], mapped[i], count); };
  auto flat = [&](Value v) { return prim::reshape(v, {type_of(v).numel()}); };
  auto shifted = [&](size_t i, Expr size) {
    Value v = repeated(i), at = prim::iota(shape_of(v), 0, DType::Int64);
    Value step = prim::broadcast(prim::size_value(size), shape_of(v), {});
    return flat(prim::binary("add", v, prim::binary("mul", at, step)));
  };
  Value out = product(shifted(0, rows), shifted(1, inner), flat(repeated(2)),
                      prim::reshape(repeated(3), {count * inner, columns}), count * rows);
  return {prim::reshape(out, {count, rows, columns})};
}

}  // namespace

void add_sparse_primitives(Table& t) {
  t.prim("sparse_mm(Tensor row, Tensor column, Tensor values, Tensor dense, SymInt[] count) -> Tensor")
      .kind(Kind::Whole)
      .doc(
          "A dense, where A of count[0] rows has values[e] at (row[e], column[e]); what repeats is added. The entries come in any order; those sorted by row are multiplied without being sorted first.")
      .type(product_type)
      .eval(product_eval)
      .batched(product_batched)
      .transposed(product_transposed, Linear::Each);
}

}  // namespace brasa::ops
