#include "ops/primitives/factorisation.h"

// Symmetric and Hermitian matrices that are not definite.
namespace brasa::ops::factorisation {
namespace {

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

}  // namespace

void add_indefinite(Table& t) {
  t.prim("ldl(Tensor a, bool hermitian) -> (Tensor ld, Tensor pivots, Tensor info)")
      .kind(Kind::Whole)
      .costly()
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
      .batched(batched_by_repeating)
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
      .batched(batched_by_repeating)
      .no_gradient();
}

}  // namespace brasa::ops::factorisation
