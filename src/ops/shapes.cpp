#include "ops/shapes.h"

#include <algorithm>
#include <numeric>

#include "support/checked.h"
#include "support/error.h"

namespace brasa::ops {

Dims counted(int64_t from, int64_t n) {
  Dims out(n);
  std::iota(out.begin(), out.end(), from);
  return out;
}
Dims all_dims(Value v) { return counted(0, rank_of(v)); }

bool is_less(Expr a, Expr b) {
  if (auto known = ir::provably_less(a, b)) return *known;
  return same_size(ir::min(a + 1, b), a + 1);
}

void check_shape(const char* op, const char* what, Value v, const Shape& shape) {
  bool fits = rank_of(v) == static_cast<int64_t>(shape.size());
  for (size_t d = 0; fits && d < shape.size(); ++d) fits = same_size(size_of(v, static_cast<int64_t>(d)), shape[d]);
  BRASA_CHECK(fits, op, ": expected ", what, " to be of shape ", shape, ", but got ", type_of(v));
}

int64_t known_size(Expr e) {
  ir::Facts& facts = Builder::current().facts();
  e = facts.known(e);
  if (e.is_constant()) return e.constant();
  int64_t value = facts.hint(e);
  facts.equal(e, Expr(value));
  return value;
}

Value size_tensor(Expr e, const Shape& shape, DType dtype) {
  if (e.is_constant()) return full(Number(e.constant()), shape, dtype);
  return broadcast_to(convert(prim::size_value(e), dtype), shape);
}

std::vector<Expr> repeated(const std::vector<Expr>& items, size_t n, const char* what) {
  if (items.size() == n) return items;
  BRASA_CHECK(items.size() == 1, what, " must be one number or ", n, " numbers, got ", items);
  return std::vector<Expr>(n, items[0]);
}

Value at_least_1d(Value x) { return rank_of(x) == 0 ? prim::reshape(x, {Expr(1)}) : x; }
Value flattened(Value x) { return prim::reshape(x, {type_of(x).numel()}); }

Value move_dims(Value x, const Dims& from, const Dims& to) {
  BRASA_CHECK(from.size() == to.size(), "movedim: ", from.size(), " dimensions cannot move to ", to.size(), " places");
  Dims source = wrap_dims(from, rank_of(x)), target = wrap_dims(to, rank_of(x)), order(rank_of(x), -1);
  for (size_t i = 0; i < source.size(); ++i) order[target[i]] = source[i];
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (std::find(source.begin(), source.end(), next) != source.end()) ++next;
    d = next++;
  }
  return prim::transpose(x, order);
}

Value split_dim(Value x, int64_t dim, const Shape& sizes) {
  Shape shape = shape_of(x);
  shape.erase(shape.begin() + dim);
  shape.insert(shape.begin() + dim, sizes.begin(), sizes.end());
  return prim::reshape(x, shape);
}

Value merge_dims(Value x, int64_t first, int64_t last) {
  Shape shape = shape_of(x);
  Expr n(1);
  for (int64_t d = first; d <= last; ++d) n = n * shape[d];
  shape.erase(shape.begin() + first, shape.begin() + last + 1);
  shape.insert(shape.begin() + first, n);
  return prim::reshape(x, shape);
}

Value repeat_along(Value x, int64_t dim, Expr n) {
  Shape shape = shape_of(x);
  shape.insert(shape.begin() + dim, n);
  Dims dims;
  for (int64_t d = 0; d < rank_of(x); ++d) dims.push_back(d < dim ? d : d + 1);
  return prim::broadcast(x, shape, dims);
}

Value along(Value x, int64_t dim, int64_t rank) {
  BRASA_CHECK(dim >= 0 && dim < rank, "expected a tensor with more dimensions: there is no dimension ", dim, " of ",
              rank);
  Shape shape(rank, Expr(1));
  shape[dim] = size_of(x, 0);
  return prim::reshape(x, shape);
}

Value diagonal(Value x, Expr offset, int64_t dim1, int64_t dim2) {
  int64_t rank = rank_of(x);
  BRASA_CHECK(rank >= 2, "diagonal: needs a tensor with two dimensions or more, got ", type_of(x));
  dim1 = wrap_dim(dim1, rank);
  dim2 = wrap_dim(dim2, rank);
  BRASA_CHECK(dim1 != dim2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  x = move_dims(x, {dim1, dim2}, {rank - 2, rank - 1});
  Expr rows = size_of(x, rank - 2), columns = size_of(x, rank - 1);
  if (offset.is(INT64_MIN)) offset = offset + 1;  // as far outside, and has an opposite
  Expr down = ir::max(-offset, 0), right = ir::max(offset, 0);
  Expr length = ir::max(ir::min(rows - down, columns - right), 0);
  // An offset outside the matrix leaves nothing, and must not start behind its end.
  x = narrow(x, rank - 2, ir::min(down, rows), length);
  x = narrow(x, rank - 1, ir::min(right, columns), length);
  Shape shape(shape_of(x).begin(), shape_of(x).end() - 1);
  Dims dims = counted(0, rank);
  dims[rank - 1] = rank - 2;
  return prim::broadcast(x, shape, dims);
}

Value band(const Shape& shape, const char* comparison, Expr offset) {
  auto rank = static_cast<int64_t>(shape.size());
  Value row = prim::iota(shape, rank - 2, DType::Int64), column = prim::iota(shape, rank - 1, DType::Int64);
  return prim::binary(comparison, column - row, size_tensor(offset, shape));
}

Value diagonal_embedded(Value x, Expr offset, int64_t dim1, int64_t dim2) {
  int64_t rank = rank_of(x) + 1;
  dim1 = wrap_dim(dim1, rank);
  dim2 = wrap_dim(dim2, rank);
  BRASA_CHECK(dim1 != dim2, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  // One value a row, whichever side the diagonal lies on.
  Value by_row = pad_dim(x, rank - 2, ir::max(-offset, 0), ir::max(offset, 0));
  Value square = repeat_along(by_row, rank - 1, size_of(by_row, rank - 2));
  Value out = prim::select(band(shape_of(square), "eq", offset), square, zeros_like(square));
  return move_dims(out, {rank - 2, rank - 1}, {dim1, dim2});
}

Value checked_forward_index(Value index, Expr n, const char* op) {
  Value i = convert(index, DType::Int64);
  Value ok = logical_and(ge(i, 0), lt(i, size_tensor(n, shape_of(i))));
  check_values(ok, str(op, ": index out of range for a dimension of size ", n));
  return i;
}

Value pulled_through(Value from, Value to, Value ct) {
  for (Value v = to; !(v == from); v = v.node->inputs()[0]) {
    BRASA_ASSERT(row_of(*v.node).transposed, v.node->op->name(), " is not linear");
    ct = row_of(*v.node).transposed(0, *v.node, ct);
  }
  return ct;
}

}  // namespace brasa::ops
