#include <algorithm>

#include "ops/primitives/factorisation.h"

namespace brasa::ops::factorisation {
namespace {

// A[p] = L U in blocks: the square part, and the rows below (tall) or the columns to the right (wide) that follow from it.
struct LuParts {
  Expr m, n, k;
  bool tall, wide;
  Value p, lu, square, l_square;
  explicit LuParts(const Node& node) : m(rows_of(result_of(node))), n(columns_of(result_of(node))), k(ir::min(m, n)) {
    lu = result_of(node);
    tall = is_less(n, m);
    wide = is_less(m, n);
    k = tall ? n : m;
    p = prim::lu_permutation(result_of(node, 1), m);
    square = corner(lu);
    l_square = tril(square, -1) + identity_like(square);
  }
  Value corner(Value x) const { return column_block(row_block(x, Expr(0), k), Expr(0), k); }
  Value below(Value x) const { return row_block(x, k, m - k); }
  Value right(Value x) const { return column_block(x, k, n - k); }
};

std::vector<Value> lu_vjp(const Node& node, Cotangents cts, const std::vector<bool>&) {
  if (!cts[0]) return {Value{}};
  LuParts f(node);
  Value g = cts[0], across = conj(f.square), gl = tril(f.corner(g), -1), gu = triu(f.corner(g)), u = triu(f.square),
        rest;
  if (f.wide) {
    rest = solve_triangle(across, f.right(g), {.transposed = true, .unit = true});
    gl = gl - tril(mm(rest, mh(f.right(f.lu))), -1);
  }
  if (f.tall) {
    rest = solve_triangle_right(across, f.below(g), {.upper = true, .transposed = true});
    gu = gu - triu(mm(mh(f.below(f.lu)), rest));
  }
  Value inner = tril(mm(mh(f.l_square), gl), -1) + triu(mm(gu, mh(u)));
  Value ga = solve_triangle(across, inner, {.transposed = true, .unit = true});
  ga = solve_triangle_right(across, ga, {.upper = true, .transposed = true});
  if (f.wide) ga = prim::concat({ga, rest}, rank_of(ga) - 1);
  if (f.tall) ga = prim::concat({ga, rest}, rank_of(ga) - 2);
  return {unpermuted_rows(ga, f.p)};
}
std::vector<Value> lu_jvp(const Node& node, Cotangents t) {
  LuParts f(node);
  Value da = permuted_rows(t[0], f.p), u = triu(f.square);
  Value inner = solve_triangle(f.square, f.corner(da), {.unit = true});
  inner = solve_triangle_right(f.square, inner, {.upper = true});
  Value dl = mm(f.l_square, tril(inner, -1)), du = mm(triu(inner), u), out = dl + du;
  if (f.wide) {
    Value more = solve_triangle(f.square, f.right(da) - mm(dl, f.right(f.lu)), {.unit = true});
    out = prim::concat({out, more}, rank_of(out) - 1);
  }
  if (f.tall) {
    Value more = solve_triangle_right(f.square, f.below(da) - mm(f.below(f.lu), du), {.upper = true});
    out = prim::concat({out, more}, rank_of(out) - 2);
  }
  return {out, Value{}, Value{}};
}

}  // namespace

void add_lu(Table& t) {
  t.prim("lu(Tensor a) -> (Tensor lu, Tensor pivots, Tensor info)")
      .kind(Kind::Whole)
      .costly()
      .doc("Partial pivoting, as LAPACK's getrf: row k was exchanged with row pivots[k], from 1.")
      .type([](const Args& args) {
        const Type& a = matrices("linalg.lu_factor", args);
        return std::vector<Type>{a, with(a, {least(a)}, DType::Int32), with(a, {}, DType::Int32)};
      })
      .eval(each_matrix([](const Node&, auto a, int64_t b, std::vector<Array>& out) {
        std::vector<int64_t> pivots;
        set_int(out[2], b, dense::lu(a, pivots));
        put(out[0], b, a.a);
        put_ints(out[1], b, pivots);
      }))
      .batched(batched_by_repeating)
      .jvp(lu_jvp)
      .vjp(lu_vjp);
  t.prim("lu_permutation(Tensor pivots, SymInt rows) -> Tensor")
      .kind(Kind::Whole)
      .doc("The rows in the order in which exchanging row k with row pivots[k] - 1, one k after the other, puts them.")
      .type([](const Args& args) {
        const Type& p = operand(args);
        BRASA_CHECK(p.rank() >= 1 && p.dtype == DType::Int32,
                    "LU_pivots is expected to be of dtype torch.int32 with at least one dimension, got ", p);
        Shape s = p.shape;
        s.back() = args[1].get<Expr>();
        return std::vector<Type>{{DType::Int64, s, false}};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<Array> out = result_arrays(n);
        int64_t k = in[0]->shape.back(), rows = out[0].shape.back();
        for (int64_t b = 0; rows > 0 && b < out[0].numel() / rows; ++b) {
          std::vector<int64_t> order(rows);
          for (int64_t i = 0; i < rows; ++i) order[i] = i;
          for (int64_t i = 0; i < std::min(k, rows); ++i) {
            int64_t p = get_int(*in[0], b * k + i) - 1;
            BRASA_CHECK(p >= 0 && p < rows, "pivots passed to lu_unpack must be between 1 and ", rows, ", got ", p + 1);
            std::swap(order[i], order[p]);
          }
          put_ints(out[0], b, order);
        }
        return out;
      })
      .batched(batched_by_repeating)
      .no_gradient();
}

}  // namespace brasa::ops::factorisation
