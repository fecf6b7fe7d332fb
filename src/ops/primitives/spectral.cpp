#include "ops/primitives/factorisation.h"

// Eigenvalues and singular values.
namespace brasa::ops::factorisation {
namespace {

// Whether a factorisation is asked for vectors, its last argument; else these have no elements.
bool wants_vectors(const Args& args) { return args.back().get<bool>(); }
Expr if_wanted(const Args& args, Expr size) { return wants_vectors(args) ? size : Expr(0); }
void need_vectors(const Node& n) {
  BRASA_ASSERT(wants_vectors(n.args), n.op->name(), " has no derivative without its vectors");
}

// f_ij = s_j - s_i, with 1 on the diagonal.
Value gaps(Value s) {
  Value d = unsqueeze(s, rank_of(s) - 1) - unsqueeze(s, rank_of(s));
  return where(broadcast_to(convert(identity_like(d), DType::Bool), shape_of(d)), constant_like(d, 1), d);
}
// x_ij / (s_j - s_i), and 0 on the diagonal.
Value over_gaps(Value x, Value s) {
  Value id = identity_like(x);
  return (x - x * id) / convert(gaps(s), dtype_of(x));
}

std::vector<Value> eigh_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  need_vectors(n);
  Value w = result_of(n), v = result_of(n, 1);
  if (!cts[1]) return {cts[0] ? mm(column_scaled(v, cts[0]), mh(v)) : Value{}};
  Value inner = over_gaps(mm(mh(v), cts[1]), w);
  if (cts[0]) inner = inner + diagonal_matrix(convert(cts[0], dtype_of(v)));
  // As of Hermitian matrices, whichever triangle is read.
  return {symmetrised(mm(mm(v, inner), mh(v)))};
}
std::vector<Value> eigh_jvp(const Node& n, Cotangents t) {
  need_vectors(n);
  Value w = result_of(n), v = result_of(n, 1), m = mm(mm(mh(v), symmetrised(t[0])), v);
  return {real(diagonal_of(m)), mm(v, over_gaps(m, w))};
}

struct SvdParts {
  Value u, s, v, vh;
  Expr m, n, k;
  explicit SvdParts(const Node& node)
      : s(result_of(node, 1)), m(rows_of(result_of(node))), n(columns_of(result_of(node, 2))) {
    need_vectors(node);
    k = s ? size_of(s, rank_of(s) - 1) : Expr(0);
    // With full matrices only the first k vectors have derivatives.
    u = column_block(result_of(node), Expr(0), k);
    vh = row_block(result_of(node, 2), Expr(0), k);
    v = mh(vh);
  }
};
Value outside(Value basis, Value x) { return x - mm(basis, mm(mh(basis), x)); }

// Only i Im(x) / s of the diagonal of the derivatives of U and V is determined, as the difference of theirs: each pair of vectors
// may be turned by one phase. U has all of it here, and what does not depend on the phase comes out right.
std::vector<Value> svd_vjp(const Node& node, Cotangents cts, const std::vector<bool>&) {
  SvdParts f(node);
  if (!cts[0] && !cts[2]) return {cts[1] ? mm(column_scaled(f.u, cts[1]), f.vh) : Value{}};
  Value gu = cts[0] ? column_block(cts[0], Expr(0), f.k) : Value{};
  Value gv = cts[2] ? mh(row_block(cts[2], Expr(0), f.k)) : Value{};
  Value s2 = f.s * f.s, inner;
  if (gu) {
    Value x = mm(mh(f.u), gu);
    inner = column_scaled(over_gaps(x - mh(x), s2), f.s);
    if (is_complex(dtype_of(x))) {
      Value turn = imag(diagonal_of(x)) / f.s;
      inner = inner + diagonal_matrix(complex(zeros_like(turn), turn));
    }
  }
  if (gv) {
    Value x = mm(mh(f.v), gv);
    inner = plus(inner, row_scaled(f.s, over_gaps(x - mh(x), s2)));
  }
  if (cts[1]) inner = inner + diagonal_matrix(convert(cts[1], dtype_of(inner)));
  Value left = mm(f.u, inner);
  if (gu && is_less(f.k, f.m)) left = left + column_scaled(outside(f.u, gu), 1 / f.s);
  Value ga = mm(left, f.vh);
  if (gv && is_less(f.k, f.n)) ga = ga + mm(column_scaled(f.u, 1 / f.s), mh(outside(f.v, gv)));
  return {ga};
}
std::vector<Value> svd_jvp(const Node& node, Cotangents t) {
  SvdParts f(node);
  Value da = t[0], p = mm(mm(mh(f.u), da), f.v), s2 = f.s * f.s, d = diagonal_of(p);
  auto symmetric = [](Value x) { return x + mh(x); };
  Value du = over_gaps(symmetric(column_scaled(p, f.s)), s2), dv = over_gaps(symmetric(row_scaled(f.s, p)), s2);
  if (is_complex(dtype_of(p))) {
    Value turn = imag(d) / f.s;
    du = du + diagonal_matrix(complex(zeros_like(turn), turn));
  }
  du = mm(f.u, du);
  dv = mm(f.v, dv);
  if (is_less(f.k, f.m)) du = du + column_scaled(outside(f.u, mm(da, f.v)), 1 / f.s);
  if (is_less(f.k, f.n)) dv = dv + column_scaled(outside(f.v, mm(mh(da), f.u)), 1 / f.s);
  auto widened = [](Value x, Expr size) { return pad_dim(x, rank_of(x) - 1, Expr(0), size - columns_of(x)); };
  return {widened(du, columns_of(result_of(node))), real(d), mh(widened(dv, rows_of(result_of(node, 2))))};
}

// Columns of norm 1: what of a derivative changes their length is taken away.
std::vector<Value> eig_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  if (!cts[0] && !cts[1] && !cts[2] && !cts[3]) return {Value{}};
  need_vectors(n);
  Value w = complex(result_of(n, 0), result_of(n, 1)), v = complex(result_of(n, 2), result_of(n, 3)), vh = mh(v), inner;
  if (cts[2] || cts[3]) {
    Value g = complex(or_zeros(cts[2], result_of(n, 2)), or_zeros(cts[3], result_of(n, 3)));
    Value x = mm(vh, g);
    x = x - column_scaled(mm(vh, v), real(diagonal_of(x)));
    inner = over_gaps(x, conj(w));
  }
  if (cts[0] || cts[1])
    inner = plus(inner, diagonal_matrix(complex(or_zeros(cts[0], result_of(n)), or_zeros(cts[1], result_of(n, 1)))));
  Value ga = solve_square(vh, mm(inner, vh));
  return {is_complex(operand(n.args).dtype) ? ga : real(ga)};
}
std::vector<Value> eig_jvp(const Node& n, Cotangents t) {
  need_vectors(n);
  Value w = complex(result_of(n, 0), result_of(n, 1)), v = complex(result_of(n, 2), result_of(n, 3));
  Value p = solve_square(v, mm(convert(t[0], dtype_of(v)), v)), dw = diagonal_of(p), x = over_gaps(p, w);
  Value dv = mm(v, x);
  dv = dv - column_scaled(v, real(diagonal_of(mm(mh(v), dv))));
  return {real(dw), imag(dw), real(dv), imag(dv)};
}

}  // namespace

void add_spectral(Table& t) {
  t.prim("eigh(Tensor a, bool with_vectors) -> (Tensor values, Tensor vectors)")
      .kind(Kind::Whole)
      .costly()
      .doc("Of the Hermitian matrix with this lower triangle; ascending.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.eigh", args);
        return std::vector<Type>{with(a, {rows(a)}, part(a)), with(a, {rows(a), if_wanted(args, rows(a))})};
      })
      .eval(each_matrix([](const Node& n, auto a, int64_t b, std::vector<Array>& out) {
        for (int64_t i = 0; i < a.rows; ++i) {
          a(i, i) = std::real(a(i, i));
          for (int64_t j = i + 1; j < a.rows; ++j) a(i, j) = dense::conj(a(j, i));
        }
        std::vector<double> values;
        decltype(a) vectors;
        dense::eigh(a, values, vectors);
        put(out[0], b, values);
        if (wants_vectors(n.args)) put(out[1], b, vectors.a);
      }))
      .batched(batched_by_repeating)
      .jvp(eigh_jvp)
      .vjp(eigh_vjp);
  t.prim("svd(Tensor a, bool full, bool with_vectors) -> (Tensor u, Tensor s, Tensor vh)")
      .kind(Kind::Whole)
      .costly()
      .doc("A = U diag(S) Vᴴ, S descending.")
      .type([](const Args& args) {
        const Type& a = matrices("linalg.svd", args);
        bool full = args[1].get<bool>();
        Expr m = rows(a), n = columns(a), k = least(a);
        return std::vector<Type>{with(a, {m, if_wanted(args, full ? m : k)}), with(a, {k}, part(a)),
                                 with(a, {if_wanted(args, full ? n : k), n})};
      })
      .eval(each_matrix([](const Node& n, const auto& a, int64_t b, std::vector<Array>& out) {
        std::decay_t<decltype(a)> u, v;
        std::vector<double> s;
        dense::svd(a, n.arg<bool>(1), u, s, v);
        put(out[1], b, s);
        if (!wants_vectors(n.args)) return;
        put(out[0], b, u.a);
        put(out[2], b, adjoint(v).a);
      }))
      .batched(batched_by_repeating)
      .jvp(svd_jvp)
      .vjp(svd_vjp);
  t.prim("eig(Tensor a, bool with_vectors) -> (Tensor re, Tensor im, Tensor vectors_re, Tensor vectors_im)")
      .kind(Kind::Whole)
      .costly()
      .doc("Eigenvalues and vectors of norm 1 of a general matrix, as real and imaginary parts.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.eig", args);
        Type values = with(a, {rows(a)}, part(a)), vectors = with(a, {rows(a), if_wanted(args, rows(a))}, part(a));
        return std::vector<Type>{values, values, vectors, vectors};
      })
      .eval(each_matrix([](const Node& n, const auto& a, int64_t b, std::vector<Array>& out) {
        std::vector<double> re, im;
        Matrix<double> vr, vi;
        dense::eig(a, re, im, vr, vi);
        put(out[0], b, re);
        put(out[1], b, im);
        if (!wants_vectors(n.args)) return;
        put(out[2], b, vr.a);
        put(out[3], b, vi.a);
      }))
      .batched(batched_by_repeating)
      .jvp(eig_jvp)
      .vjp(eig_vjp);
}

}  // namespace brasa::ops::factorisation
