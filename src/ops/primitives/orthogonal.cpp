#include <algorithm>

#include "ops/primitives/factorisation.h"

// By Householder's reflectors.
namespace brasa::ops::factorisation {
namespace {

// A = Q [R1 R2]: of a wide matrix the first columns decide Q.
struct QrParts {
  Value q, r, r1, r2;
  Expr m, n;
  bool wide;
  explicit QrParts(const Node& node) : q(result_of(node)), r(result_of(node, 1)), m(rows_of(q)), n(columns_of(r)) {
    wide = is_less(m, n);
    BRASA_CHECK(!node.arg<bool>(1) || !is_less(n, m),
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols");
    r1 = first(r);
    if (wide) r2 = second(r);
  }
  Value first(Value x) const { return wide ? column_block(x, Expr(0), m) : x; }
  Value second(Value x) const { return column_block(x, m, n - m); }
};

// x with half the diagonal.
Value half_diagonal(Value x) { return x * (1 - 0.5 * identity_like(x)); }

std::vector<Value> qr_vjp(const Node& node, Cotangents cts, const std::vector<bool>&) {
  QrParts f(node);
  Value gq = or_zeros(cts[0], f.q), gr = or_zeros(cts[1], f.r), g1 = f.first(gr), rest;
  if (f.wide) {
    rest = mm(f.q, f.second(gr));
    gq = gq + mm(mm(f.q, f.r2), mh(f.second(gr)));
  }
  Value x = triu(mm(g1, mh(f.r1)) - mm(mh(f.q), gq));
  Value ga = gq + mm(f.q, half_diagonal(x + mh(x)));
  ga = solve_triangle_right(conj(f.r1), ga, {.upper = true, .transposed = true});
  if (f.wide) ga = prim::concat({ga, rest}, rank_of(ga) - 1);
  return {ga};
}
std::vector<Value> qr_jvp(const Node& node, Cotangents t) {
  QrParts f(node);
  Value d1 = solve_triangle_right(f.r1, f.first(t[0]), {.upper = true});
  Value m = mm(mh(f.q), d1), upper = triu(half_diagonal(m + mh(m)));
  Value dr = mm(upper, f.r1), dq = d1 - mm(f.q, upper);
  if (f.wide) dr = prim::concat({dr, mm(mh(f.q), f.second(t[0]) - mm(dq, f.r2))}, rank_of(dr) - 1);
  return {dq, dr};
}

}  // namespace

void add_orthogonal(Table& t) {
  t.prim("qr(Tensor a, bool complete) -> (Tensor q, Tensor r)")
      .kind(Kind::Whole)
      .costly()
      .doc("By Householder's reflectors; R's diagonal has the signs that LAPACK gives.")
      .type([](const Args& args) {
        const Type& a = matrices("linalg.qr", args);
        Expr k = args[1].get<bool>() ? rows(a) : least(a);
        return std::vector<Type>{with(a, {rows(a), k}), with(a, {k, columns(a)})};
      })
      .eval(each_matrix([](const Node& n, auto a, int64_t b, std::vector<Array>& out) {
        auto tau = dense::householder(a);
        int64_t k = n.arg<bool>(1) ? a.rows : std::min(a.rows, a.cols);
        std::decay_t<decltype(a)> r(k, a.cols);
        for (int64_t i = 0; i < k; ++i)
          for (int64_t j = i; j < a.cols; ++j) r(i, j) = a(i, j);
        put(out[0], b, dense::product_of_reflectors(a, tau, k).a);
        put(out[1], b, r.a);
      }))
      .batched(batched_by_repeating)
      .jvp(qr_jvp)
      .vjp(qr_vjp);
  t.prim("geqrf(Tensor a) -> (Tensor reflectors, Tensor tau)")
      .kind(Kind::Whole)
      .costly()
      .doc("R in and above the diagonal, below it v of the reflectors I - tau v vᴴ, whose leading 1 is not stored.")
      .no_gradient()
      .type([](const Args& args) {
        const Type& a = matrices("geqrf", args);
        return std::vector<Type>{a, with(a, {least(a)})};
      })
      .eval(each_matrix([](const Node&, auto a, int64_t b, std::vector<Array>& out) {
        put(out[1], b, dense::householder(a));
        put(out[0], b, a.a);
      }))
      .batched(batched_by_repeating);
}

}  // namespace brasa::ops::factorisation
