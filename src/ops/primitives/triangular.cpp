#include "ops/primitives/factorisation.h"

// Cholesky's factor, and systems with a triangle.
namespace brasa::ops::factorisation {

Value cholesky_gradient(Value l, Value ct) {
  Value phi = mm(mh(l), ct);
  // The diagonal as it is: PyTorch's gradients keep its imaginary part, on which no loss depends.
  Value inner = 0.5 * (tril(phi) + mh(tril(phi, -1)));
  Value left = solve_triangle(conj(l), inner, {.transposed = true});
  return solve_triangle_right(l, left, {});
}

namespace {

std::vector<Value> cholesky_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  return {cts[0] ? cholesky_gradient(result_of(n), cts[0]) : Value{}};
}
std::vector<Value> cholesky_jvp(const Node& n, Cotangents t) {
  Value l = result_of(n), inner = solve_triangle(l, symmetrised(t[0]), {});
  inner = solve_triangle_right(conj(l), inner, {.transposed = true});
  return {mm(l, half_lower(inner)), Value{}};
}

Value masked(Value x, Triangle how) {
  int64_t off = how.unit ? 1 : 0;
  return how.upper ? triu(x, off) : tril(x, -off);
}
Triangle triangle(const Node& n) { return {n.arg<bool>(2), n.arg<bool>(3), n.arg<bool>(4)}; }

std::vector<Value> triangular_vjp(const Node& n, Cotangents cts, const std::vector<bool>& needs) {
  Value a = n.arg<Value>(0), x = result_of(n);
  Triangle how = triangle(n), back = how;
  back.transposed = !how.transposed;
  Value gb = prim::triangular_solve(conj(a), cts[0], back), ga;
  if (needs[0]) ga = masked(-(how.transposed ? mm(conj(x), mt(gb)) : mm(gb, mh(x))), how);
  return {ga, gb};
}
std::vector<Value> triangular_jvp(const Node& n, Cotangents t) {
  Value a = n.arg<Value>(0), x = result_of(n), right = t[1];
  Triangle how = triangle(n);
  if (t[0]) {
    Value da = masked(t[0], how);
    right = plus(right, -mm(how.transposed ? mt(da) : da, x));
  }
  return {prim::triangular_solve(a, right, how)};
}

}  // namespace

void add_triangular(Table& t) {
  t.prim("cholesky(Tensor a) -> (Tensor l, Tensor info)")
      .kind(Kind::Whole)
      .costly()
      .doc("A = L Lᴴ of the lower triangle; info is the order of the first minor that is not positive, or 0.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.cholesky", args);
        return std::vector<Type>{with(a, {rows(a), rows(a)}), with(a, {}, DType::Int32)};
      })
      .eval(each_matrix([](const Node&, auto a, int64_t b, std::vector<Array>& out) {
        set_int(out[1], b, dense::cholesky(a));
        put(out[0], b, a.a);
      }))
      .batched(batched_by_repeating)
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
      .batched(batched_by_repeating)
      .jvp(triangular_jvp)
      .vjp(triangular_vjp);
}

}  // namespace brasa::ops::factorisation
