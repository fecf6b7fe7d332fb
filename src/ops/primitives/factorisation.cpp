#include <algorithm>

#include "ops/complex.h"
#include "ops/linear_algebra.h"
#include "ops/primitives/dense.h"
#include "ops/primitives/families.h"
#include "ops/primitives/interp.h"
#include "ops/shapes.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

using dense::Matrix;
using Cotangents = std::span<const Value>;

// ---- types

const Type& operand(const Args& args, size_t i = 0) { return ir::type_of(args[i].get<Value>()); }

const Type& matrices(const char* op, const Args& args) {
  const Type& t = operand(args);
  BRASA_CHECK(t.rank() >= 2, op, ": The input tensor must have at least 2 dimensions, got ", t);
  DType part = real_part_of(t.dtype);
  BRASA_CHECK(part == DType::Float32 || part == DType::Float64, op,
              ": expected float32, float64, complex64 or complex128, got ", t);
  return t;
}
// Sizes that a fact makes equal may be spelled differently in a type rule, which knows no facts: prim's functions ask.
bool may_equal(Expr a, Expr b) { return ir::provably_equal(a, b).value_or(true); }
const Type& squares(const char* op, const Args& args) {
  const Type& t = matrices(op, args);
  BRASA_CHECK(may_equal(t.shape[t.rank() - 2], t.shape.back()), op, ": A must be batches of square matrices, got ", t);
  return t;
}
Expr rows(const Type& t) { return t.shape[t.rank() - 2]; }
Expr columns(const Type& t) { return t.shape.back(); }
Expr least(const Type& t) { return ir::min(rows(t), columns(t)); }
// The batch of t with these dimensions behind it.
Type with(const Type& t, std::initializer_list<Expr> last, std::optional<DType> dtype = {}) {
  Shape s(t.shape.begin(), t.shape.end() - 2);
  s.insert(s.end(), last);
  return {dtype.value_or(t.dtype), s, false};
}

// Of eigenvalues and singular values of real matrices and Hermitian ones.
DType part(const Type& t) { return real_part_of(t.dtype); }

// ---- evaluation

using Complex = std::complex<double>;

template <class T>
T element(const Array& a, int64_t i) {
  if constexpr (std::is_same_v<T, Complex>) return get_complex(a, i);
  return get(a, i);
}
// f(0.0), or f(Complex()) for complex elements.
template <class F>
void by_kind(const Array& a, F f) {
  is_complex(a.dtype) ? f(Complex()) : f(double());
}

// The matrices of an array, and results written back one by one.
struct Batches {
  const Array& from;
  int64_t rows, cols, count;
  explicit Batches(const Array& a) : from(a), rows(a.shape[a.shape.size() - 2]), cols(a.shape.back()), count(1) {
    for (size_t d = 0; d + 2 < a.shape.size(); ++d) count *= a.shape[d];
  }
  template <class T>
  Matrix<T> at(int64_t b) const {
    Matrix<T> m(rows, cols);
    for (int64_t i = 0; i < rows * cols; ++i) m.a[i] = element<T>(from, b * rows * cols + i);
    return m;
  }
};
template <class T>
void put(Array& out, int64_t batch, const std::vector<T>& v) {
  auto n = static_cast<int64_t>(v.size());
  for (int64_t i = 0; i < n; ++i)
    if constexpr (std::is_same_v<T, Complex>)
      set_complex(out, batch * n + i, v[i]);
    else
      set(out, batch * n + i, v[i]);
}
void put_ints(Array& out, int64_t batch, const std::vector<int64_t>& v) {
  auto n = static_cast<int64_t>(v.size());
  for (int64_t i = 0; i < n; ++i) set_int(out, batch * n + i, v[i]);
}
std::vector<Array> result_arrays(const Node& n) {
  std::vector<Array> out;
  for (size_t i = 0; i < n.types.size(); ++i) out.push_back(result_array(n, i));
  return out;
}
// f(matrix, its number, results) for every matrix of the first operand.
template <class F>
Eval each_matrix(F f) {
  return [f](const Node& n, std::span<const Array* const> in) {
    std::vector<Array> out = result_arrays(n);
    Batches all(*in[0]);
    by_kind(*in[0], [&](auto kind) {
      for (int64_t b = 0; b < all.count; ++b) f(n, all.at<decltype(kind)>(b), b, out);
    });
    return out;
  };
}

// ---- batching: what is not mapped is repeated, and the new dimension is one more of the batch.

std::vector<Value> batched(const Node& n, std::span<const Value> in, const std::vector<bool>& mapped, Expr count) {
  Args args = n.args;
  for (size_t i = 0; i < in.size(); ++i) args[i] = mapped[i] ? in[i] : repeat_along(in[i], 0, count);
  return call_all(n.op->name(), args);
}

// ---- derivatives

Value self(const Node& n, size_t i = 0) { return n.graph->nodes()[n.id]->out(i); }
Value plus(Value a, Value b) { return !a ? b : !b ? a : a + b; }
Value or_zero(Value v, Value like) { return v ? v : zeros_like(like); }
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

std::vector<Value> cholesky_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  if (!cts[0]) return {Value{}};
  Value l = self(n), phi = mm(mh(l), cts[0]);
  // The diagonal as it is: PyTorch's gradients keep its imaginary part, on which no loss depends.
  Value inner = 0.5 * (tril(phi) + mh(tril(phi, -1)));
  Value left = solve_triangle(conj(l), inner, {.transposed = true});
  return {solve_triangle_right(l, left, {})};
}
std::vector<Value> cholesky_jvp(const Node& n, Cotangents t) {
  Value l = self(n), inner = solve_triangle(l, symmetrised(t[0]), {});
  inner = solve_triangle_right(conj(l), inner, {.transposed = true});
  return {mm(l, half_lower(inner)), Value{}};
}

Value masked(Value x, Triangle how) {
  int64_t off = how.unit ? 1 : 0;
  return how.upper ? triu(x, off) : tril(x, -off);
}
Triangle triangle(const Node& n) { return {n.arg<bool>(2), n.arg<bool>(3), n.arg<bool>(4)}; }

std::vector<Value> triangular_vjp(const Node& n, Cotangents cts, const std::vector<bool>& needs) {
  Value a = n.arg<Value>(0), x = self(n);
  Triangle how = triangle(n), back = how;
  back.transposed = !how.transposed;
  Value gb = prim::triangular_solve(conj(a), cts[0], back), ga;
  if (needs[0]) ga = masked(-(how.transposed ? mm(conj(x), mt(gb)) : mm(gb, mh(x))), how);
  return {ga, gb};
}
std::vector<Value> triangular_jvp(const Node& n, Cotangents t) {
  Value a = n.arg<Value>(0), x = self(n), right = t[1];
  Triangle how = triangle(n);
  if (t[0]) {
    Value da = masked(t[0], how);
    right = plus(right, -mm(how.transposed ? mt(da) : da, x));
  }
  return {prim::triangular_solve(a, right, how)};
}

// A[p] = L U in blocks: the square part, and the rows below (tall) or the columns to the right (wide) that follow from it.
struct LuParts {
  Expr m, n, k;
  bool tall, wide;
  Value p, lu, square, l_square;
  explicit LuParts(const Node& node) : m(rows_of(self(node))), n(columns_of(self(node))), k(ir::min(m, n)) {
    lu = self(node);
    tall = is_less(n, m);
    wide = is_less(m, n);
    k = tall ? n : m;
    p = permutation_matrix(prim::lu_permutation(self(node, 1), m), dtype_of(lu));
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
  return {mm(f.p, ga)};
}
std::vector<Value> lu_jvp(const Node& node, Cotangents t) {
  LuParts f(node);
  Value da = mm(mt(f.p), t[0]), u = triu(f.square);
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

// A = Q [R1 R2]: of a wide matrix the first columns decide Q.
struct QrParts {
  Value q, r, r1, r2;
  Expr m, n;
  bool wide;
  explicit QrParts(const Node& node) : q(self(node)), r(self(node, 1)), m(rows_of(q)), n(columns_of(r)) {
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
  Value gq = or_zero(cts[0], f.q), gr = or_zero(cts[1], f.r), g1 = f.first(gr), rest;
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

std::vector<Value> eigh_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  Value w = self(n), v = self(n, 1);
  if (!cts[1]) return {cts[0] ? mm(column_scaled(v, cts[0]), mh(v)) : Value{}};
  Value inner = over_gaps(mm(mh(v), cts[1]), w);
  if (cts[0]) inner = inner + diagonal_matrix(convert(cts[0], dtype_of(v)));
  // As of Hermitian matrices, whichever triangle is read.
  return {symmetrised(mm(mm(v, inner), mh(v)))};
}
std::vector<Value> eigh_jvp(const Node& n, Cotangents t) {
  Value w = self(n), v = self(n, 1), m = mm(mm(mh(v), symmetrised(t[0])), v);
  return {real(diagonal_of(m)), mm(v, over_gaps(m, w))};
}

struct SvdParts {
  Value u, s, v, vh;
  Expr m, n, k;
  explicit SvdParts(const Node& node) : s(self(node, 1)), m(rows_of(self(node))), n(columns_of(self(node, 2))) {
    k = s ? size_of(s, rank_of(s) - 1) : Expr(0);
    // With full matrices only the first k vectors have derivatives.
    u = column_block(self(node), Expr(0), k);
    vh = row_block(self(node, 2), Expr(0), k);
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
  return {widened(du, columns_of(self(node))), real(d), mh(widened(dv, rows_of(self(node, 2))))};
}

// Columns of norm 1: what of a derivative changes their length is taken away.
std::vector<Value> eig_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  if (!cts[0] && !cts[1] && !cts[2] && !cts[3]) return {Value{}};
  Value w = complex(self(n, 0), self(n, 1)), v = complex(self(n, 2), self(n, 3)), vh = mh(v), inner;
  if (cts[2] || cts[3]) {
    Value g = complex(or_zero(cts[2], self(n, 2)), or_zero(cts[3], self(n, 3)));
    Value x = mm(vh, g);
    x = x - column_scaled(mm(vh, v), real(diagonal_of(x)));
    inner = over_gaps(x, conj(w));
  }
  if (cts[0] || cts[1])
    inner = plus(inner, diagonal_matrix(complex(or_zero(cts[0], self(n)), or_zero(cts[1], self(n, 1)))));
  Value ga = solve_square(vh, mm(inner, vh));
  return {is_complex(operand(n.args).dtype) ? ga : real(ga)};
}
std::vector<Value> eig_jvp(const Node& n, Cotangents t) {
  Value w = complex(self(n, 0), self(n, 1)), v = complex(self(n, 2), self(n, 3));
  Value p = solve_square(v, mm(convert(t[0], dtype_of(v)), v)), dw = diagonal_of(p), x = over_gaps(p, w);
  Value dv = mm(v, x);
  dv = dv - column_scaled(v, real(diagonal_of(mm(mh(v), dv))));
  return {real(dw), imag(dw), real(dv), imag(dv)};
}

void add_triangular(Table& t) {
  t.prim("cholesky(Tensor a) -> (Tensor l, Tensor info)")
      .kind(Kind::Whole)
      .doc("A = L Lᴴ of the lower triangle; info is the order of the first minor that is not positive, or 0.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.cholesky", args);
        return std::vector<Type>{with(a, {rows(a), rows(a)}), with(a, {}, DType::Int32)};
      })
      .eval(each_matrix([](const Node&, auto a, int64_t b, std::vector<Array>& out) {
        set_int(out[1], b, dense::cholesky(a));
        put(out[0], b, a.a);
      }))
      .batched(batched)
      .jvp(cholesky_jvp)
      .vjp(cholesky_vjp);
  t.prim("triangular_solve(Tensor a, Tensor b, bool upper, bool transposed, bool unit) -> Tensor")
      .kind(Kind::Whole)
      .doc("T⁻¹ b or T⁻ᵀ b, where T is one triangle of a, with ones on its diagonal if unit.")
      .type([](const Args& args) {
        const Type &a = squares("linalg.solve_triangular", args), &b = operand(args, 1);
        BRASA_CHECK(b.dtype == a.dtype && b.rank() == a.rank() && may_equal(rows(a), rows(b)),
                    "linalg.solve_triangular: Incompatible shapes or dtypes of A and B, got ", a, " and ", b);
        return std::vector<Type>{with(a, {rows(b), columns(b)})};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<Array> out = result_arrays(n);
        Batches all(*in[0]), right(*in[1]);
        Triangle how = triangle(n);
        bool lower = how.upper == how.transposed;
        by_kind(*in[0], [&](auto kind) {
          using T = decltype(kind);
          for (int64_t b = 0; b < all.count; ++b) {
            Matrix<T> t = all.at<T>(b), x = right.at<T>(b);
            auto at = [&](int64_t i, int64_t k) { return how.transposed ? t(k, i) : t(i, k); };
            for (int64_t c = 0; c < x.cols; ++c)
              for (int64_t step = 0; step < x.rows; ++step) {
                int64_t i = lower ? step : x.rows - 1 - step;
                for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : x.rows); ++k) x(i, c) -= at(i, k) * x(k, c);
                if (!how.unit) x(i, c) /= t(i, i);
              }
            put(out[0], b, x.a);
          }
        });
        return out;
      })
      .batched(batched)
      .jvp(triangular_jvp)
      .vjp(triangular_vjp);
}

void add_lu(Table& t) {
  t.prim("lu(Tensor a) -> (Tensor lu, Tensor pivots, Tensor info)")
      .kind(Kind::Whole)
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
      .batched(batched)
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
      .batched(batched)
      .no_gradient();
}

// Each a row, and negative ones in pairs.
void check_ldl_pivots(const std::vector<int64_t>& pivots) {
  auto n = static_cast<int64_t>(pivots.size());
  for (int64_t k = 0; k < n; ++k) {
    bool pair = pivots[k] < 0 && k + 1 < n && pivots[k + 1] == pivots[k];
    BRASA_CHECK(pivots[k] != 0 && std::abs(pivots[k]) <= n && (pivots[k] > 0 || pair),
                "linalg.ldl_solve: pivots must be those of ldl_factor, got ", pivots);
    k += pair;
  }
}

void add_indefinite(Table& t) {
  t.prim("ldl(Tensor a, bool hermitian) -> (Tensor ld, Tensor pivots, Tensor info)")
      .kind(Kind::Whole)
      .doc(
          "A = L D Lᵀ of the lower triangle with the pivots of Bunch and Kaufman, as LAPACK's sytrf; hermitian: L D Lᴴ, as hetrf.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.ldl_factor", args);
        return std::vector<Type>{with(a, {rows(a), rows(a)}), with(a, {rows(a)}, DType::Int32),
                                 with(a, {}, DType::Int32)};
      })
      .eval(each_matrix([](const Node& n, auto a, int64_t b, std::vector<Array>& out) {
        std::vector<int64_t> pivots;
        set_int(out[2], b, dense::ldl(a, n.arg<bool>(1), pivots));
        put(out[0], b, a.a);
        put_ints(out[1], b, pivots);
      }))
      .batched(batched)
      .no_gradient();
  t.prim("ldl_solve(Tensor ld, Tensor pivots, Tensor b, bool hermitian) -> Tensor")
      .kind(Kind::Whole)
      .doc("A⁻¹ b for the factors of A.")
      .type([](const Args& args) {
        const Type &a = squares("linalg.ldl_solve", args), &p = operand(args, 1), &b = operand(args, 2);
        BRASA_CHECK(p.dtype == DType::Int32 && b.dtype == a.dtype && b.rank() == a.rank() && p.rank() == a.rank() - 1 &&
                        may_equal(rows(a), rows(b)) && may_equal(rows(a), p.shape.back()),
                    "linalg.ldl_solve: Incompatible shapes or dtypes of LD, pivots and B, got ", a, ", ", p, " and ",
                    b);
        return std::vector<Type>{with(a, {rows(b), columns(b)})};
      })
      .eval([](const Node& n, std::span<const Array* const> in) {
        std::vector<Array> out = result_arrays(n);
        Batches all(*in[0]), right(*in[2]);
        for (int64_t b = 0; b < all.count; ++b) {
          std::vector<int64_t> pivots;
          for (int64_t i = 0; i < all.rows; ++i) pivots.push_back(get_int(*in[1], b * all.rows + i));
          check_ldl_pivots(pivots);
          by_kind(*in[0], [&](auto kind) {
            using T = decltype(kind);
            Matrix<T> x = right.at<T>(b);
            dense::ldl_solve(all.at<T>(b), n.arg<bool>(3), pivots, x);
            put(out[0], b, x.a);
          });
        }
        return out;
      })
      .batched(batched)
      .no_gradient();
}

void add_orthogonal(Table& t) {
  t.prim("qr(Tensor a, bool complete) -> (Tensor q, Tensor r)")
      .kind(Kind::Whole)
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
      .batched(batched)
      .jvp(qr_jvp)
      .vjp(qr_vjp);
  t.prim("geqrf(Tensor a) -> (Tensor reflectors, Tensor tau)")
      .kind(Kind::Whole)
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
      .batched(batched);
}

void add_spectral(Table& t) {
  t.prim("eigh(Tensor a) -> (Tensor values, Tensor vectors)")
      .kind(Kind::Whole)
      .doc("Of the Hermitian matrix with this lower triangle; ascending.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.eigh", args);
        return std::vector<Type>{with(a, {rows(a)}, part(a)), with(a, {rows(a), rows(a)})};
      })
      .eval(each_matrix([](const Node&, auto a, int64_t b, std::vector<Array>& out) {
        for (int64_t i = 0; i < a.rows; ++i) {
          a(i, i) = std::real(a(i, i));
          for (int64_t j = i + 1; j < a.rows; ++j) a(i, j) = dense::conj(a(j, i));
        }
        std::vector<double> values;
        decltype(a) vectors;
        dense::eigh(a, values, vectors);
        put(out[0], b, values);
        put(out[1], b, vectors.a);
      }))
      .batched(batched)
      .jvp(eigh_jvp)
      .vjp(eigh_vjp);
  t.prim("svd(Tensor a, bool full) -> (Tensor u, Tensor s, Tensor vh)")
      .kind(Kind::Whole)
      .doc("A = U diag(S) Vᴴ, S descending.")
      .type([](const Args& args) {
        const Type& a = matrices("linalg.svd", args);
        bool full = args[1].get<bool>();
        Expr m = rows(a), n = columns(a), k = least(a);
        return std::vector<Type>{with(a, {m, full ? m : k}), with(a, {k}, part(a)), with(a, {full ? n : k, n})};
      })
      .eval(each_matrix([](const Node& n, const auto& a, int64_t b, std::vector<Array>& out) {
        std::decay_t<decltype(a)> u, v;
        std::vector<double> s;
        dense::svd(a, n.arg<bool>(1), u, s, v);
        put(out[0], b, u.a);
        put(out[1], b, s);
        put(out[2], b, adjoint(v).a);
      }))
      .batched(batched)
      .jvp(svd_jvp)
      .vjp(svd_vjp);
  t.prim("eig(Tensor a) -> (Tensor re, Tensor im, Tensor vectors_re, Tensor vectors_im)")
      .kind(Kind::Whole)
      .doc("Eigenvalues and vectors of norm 1 of a general matrix, as real and imaginary parts.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.eig", args);
        Type values = with(a, {rows(a)}, part(a)), vectors = with(a, {rows(a), rows(a)}, part(a));
        return std::vector<Type>{values, values, vectors, vectors};
      })
      .eval(each_matrix([](const Node&, const auto& a, int64_t b, std::vector<Array>& out) {
        std::vector<double> re, im;
        Matrix<double> vr, vi;
        dense::eig(a, re, im, vr, vi);
        put(out[0], b, re);
        put(out[1], b, im);
        put(out[2], b, vr.a);
        put(out[3], b, vi.a);
      }))
      .batched(batched)
      .jvp(eig_jvp)
      .vjp(eig_vjp);
}

}  // namespace

void add_factorisation_primitives(Table& t) {
  add_triangular(t);
  add_lu(t);
  add_indefinite(t);
  add_orthogonal(t);
  add_spectral(t);
}

namespace prim {
namespace {

Value square(const char* op, Value a) {
  BRASA_CHECK(rank_of(a) < 2 || same_size(rows_of(a), columns_of(a)), op,
              ": A must be batches of square matrices, got ", type_of(a));
  return a;
}

template <size_t N>
std::array<Value, N> several(const char* name, Args args) {
  std::vector<Value> r = call_all(name, std::move(args));
  std::array<Value, N> out;
  std::copy(r.begin(), r.end(), out.begin());
  return out;
}

}  // namespace

std::array<Value, 2> cholesky(Value a) { return several<2>("prim::cholesky", {square("linalg.cholesky", a)}); }
std::array<Value, 3> lu(Value a) { return several<3>("prim::lu", {a}); }
std::array<Value, 3> ldl(Value a, bool hermitian) {
  return several<3>("prim::ldl", {square("linalg.ldl_factor", a), hermitian});
}
Value ldl_solve(Value ld, Value pivots, Value b, bool hermitian) {
  return call("prim::ldl_solve", {ld, pivots, b, hermitian});
}
Value lu_permutation(Value pivots, Expr rows) { return call("prim::lu_permutation", {pivots, rows}); }
Value triangular_solve(Value a, Value b, Triangle how) {
  return call("prim::triangular_solve", {a, b, how.upper, how.transposed, how.unit});
}
std::array<Value, 2> qr(Value a, bool complete) { return several<2>("prim::qr", {a, complete}); }
std::array<Value, 2> geqrf(Value a) { return several<2>("prim::geqrf", {a}); }
std::array<Value, 2> eigh(Value a) { return several<2>("prim::eigh", {square("linalg.eigh", a)}); }
std::array<Value, 3> svd(Value a, bool full) { return several<3>("prim::svd", {a, full}); }
std::array<Value, 4> eig(Value a) { return several<4>("prim::eig", {square("linalg.eig", a)}); }

}  // namespace prim
}  // namespace brasa::ops
