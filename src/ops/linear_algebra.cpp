#include "ops/linear_algebra.h"

#include "ops/complex.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {

Value mm(Value a, Value b) { return call("aten::matmul", {a, b}); }
Value mt(Value x) { return transpose(x, rank_of(x) - 2, rank_of(x) - 1); }
Value mh(Value x) { return conj(mt(x)); }
Expr rows_of(Value x) { return size_of(x, rank_of(x) - 2); }
Expr columns_of(Value x) { return size_of(x, rank_of(x) - 1); }
Value row_block(Value x, Expr start, Expr n) { return narrow(x, rank_of(x) - 2, start, n); }
Value column_block(Value x, Expr start, Expr n) { return narrow(x, rank_of(x) - 1, start, n); }
Value tril(Value x, int64_t diagonal) { return call("aten::tril", {x, diagonal}); }
Value triu(Value x, int64_t diagonal) { return call("aten::triu", {x, diagonal}); }
Value diagonal_of(Value x) { return diagonal(x, 0, rank_of(x) - 2, rank_of(x) - 1); }
Value diagonal_matrix(Value d) { return diagonal_embedded(d, 0, rank_of(d) - 1, rank_of(d)); }
Value identity_like(Value x) { return convert(band({rows_of(x), columns_of(x)}, "eq", Expr(0)), dtype_of(x)); }
Value half_lower(Value x) { return tril(x) * (1 - 0.5 * identity_like(x)); }
Value symmetrised(Value x) { return 0.5 * (x + mh(x)); }
Value column_scaled(Value x, Value s) { return x * unsqueeze(convert(s, dtype_of(x)), rank_of(s) - 1); }
Value row_scaled(Value s, Value x) { return unsqueeze(convert(s, dtype_of(x)), rank_of(s)) * x; }

Value solve_triangle(Value a, Value b, Triangle how) {
  BRASA_CHECK(
      rank_of(a) >= 2 && rank_of(b) >= 2 && same_size(rows_of(a), columns_of(a)) && same_size(rows_of(a), rows_of(b)),
      "a triangular system needs square matrices and right sides of as many rows, got ", type_of(a), " and ",
      type_of(b));
  Shape ba = shape_of(a), bb = shape_of(b);
  Expr n = ba.back(), k = bb.back();
  ba.resize(ba.size() - 2);
  bb.resize(bb.size() - 2);
  Shape batch = broadcast_shapes(ba, bb), sa = batch, sb = batch;
  sa.insert(sa.end(), {n, n});
  sb.insert(sb.end(), {n, k});
  return prim::triangular_solve(broadcast_to(a, sa), broadcast_to(b, sb), how);
}
Value solve_triangle_right(Value a, Value b, Triangle how) {
  how.transposed = !how.transposed;
  return mt(solve_triangle(a, mt(b), how));
}

Value permutation_matrix(Value p, DType dtype) {
  Shape s = shape_of(p);
  int64_t r = rank_of(p);
  s.push_back(s.back());
  return convert(eq(broadcast_to(unsqueeze(p, r - 1), s), prim::iota(s, r - 1, DType::Int64)), dtype);
}

Value permuted_rows(Value b, Value p) {
  BRASA_CHECK(rank_of(b) >= 2 && same_size(rows_of(b), size_of(p, rank_of(p) - 1)), "a permutation ", type_of(p),
              " is one of as many rows, got ", type_of(b));
  Shape own = shape_of(p), matrix(shape_of(b).end() - 2, shape_of(b).end());
  own.pop_back();
  Shape rows = broadcast_shapes(own, Shape(shape_of(b).begin(), shape_of(b).end() - 2)), all = rows;
  rows.push_back(matrix[0]);
  all.insert(all.end(), matrix.begin(), matrix.end());
  int64_t last = static_cast<int64_t>(rows.size()) - 1;
  return prim::gather(broadcast_to(b, all), indices_along(rows, last, broadcast_to(p, rows)), counted(0, last + 1));
}
Value unpermuted_rows(Value b, Value p) {
  int64_t last = rank_of(p) - 1;
  Value place = prim::iota(shape_of(p), last, DType::Int64);
  return permuted_rows(
      b, prim::scatter(zeros_like(p), indices_along(shape_of(p), last, p), place, counted(0, last + 1), ""));
}

Value solve_definite(Value l, Value b, bool upper) {
  auto factor = [&](Value right, bool adjoint) {
    return solve_triangle(adjoint ? conj(l) : l, right, {.upper = upper, .transposed = adjoint});
  };
  return factor(factor(b, upper), !upper);
}

// I - V T Vᴴ with T = (I + D S)⁻¹ D, D = diag(tau), S the part of VᴴV above the diagonal (Joffrain et al. 2006, without dividing by tau).
Value reflected(Value a, Value tau, Value x, bool adjoint) {
  Value left = column_block(a, Expr(0), size_of(tau, rank_of(tau) - 1)), v = tril(left, -1) + identity_like(left);
  Value s = triu(mm(mh(v), v), 1), d = unsqueeze(tau, rank_of(tau));
  Value t = solve_triangle(d * s, diagonal_matrix(tau), {.upper = true, .unit = true});
  Value inner = x ? mm(mh(v), x) : mh(row_block(v, Expr(0), columns_of(a)));
  return (x ? x : identity_like(a)) - mm(v, mm(adjoint ? mh(t) : t, inner));
}

Value solve_square(Value a, Value b) {
  auto [lu, pivots, info] = prim::lu(a);
  Value permuted = permuted_rows(b, prim::lu_permutation(pivots, rows_of(a)));
  return solve_triangle(lu, solve_triangle(lu, permuted, {.unit = true}), {.upper = true});
}

}  // namespace brasa::ops
