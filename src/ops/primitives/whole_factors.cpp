#include "ops/builder.h"
#include "ops/decompose.h"
#include "ops/primitives/factorisation.h"

// What LAPACK computes of factors at once, in less work or without turning them, and the formulas for everything else.
namespace brasa::ops {
namespace factorisation {
namespace {

std::array<Value, 2> upper_cholesky(Value a) {
  auto [l, info] = prim::cholesky(mh(a));
  return {mh(l), info};
}
std::vector<Value> upper_cholesky_vjp(const Node& n, Cotangents cts, const std::vector<bool>&) {
  return {cts[0] ? mh(cholesky_gradient(mh(result_of(n)), mh(cts[0]))) : Value{}};
}
std::array<Value, 3> lu_of_transpose(Value a) {
  auto [lu, pivots, info] = prim::lu(mt(a));
  return {mt(lu), pivots, info};
}
Value inverse_from_cholesky(Value l, bool upper) { return solve_definite(l, identity_like(l), upper); }
Value product_of_reflectors(Value a, Value tau) { return reflected(a, tau, Value(), false); }

}  // namespace

void add_whole_factors(Table& t) {
  t.prim("upper_cholesky(Tensor a) -> (Tensor u, Tensor info)")
      .kind(Kind::Whole)
      .doc("A = Uᴴ U of the upper triangle; info as prim::cholesky's.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.cholesky", args);
        return std::vector<Type>{with(a, {columns(a), columns(a)}), with(a, {}, DType::Int32)};
      })
      .composed(upper_cholesky)
      .vjp(upper_cholesky_vjp)
      .samples({{floats(1, 1).in(1, 2)}, {floats(2, 1, 1).in(1, 2)}, {floats(0, 0)}});
  t.prim("lu_of_transpose(Tensor a) -> (Tensor lu, Tensor pivots, Tensor info)")
      .kind(Kind::Whole)
      .doc("The transposes of prim::lu's factors of the transposes of square matrices: LAPACK's in their own memory.")
      .type([](const Args& args) {
        const Type& a = squares("linalg.lu_factor", args);
        return std::vector<Type>{with(a, {columns(a), columns(a)}), with(a, {columns(a)}, DType::Int32),
                                 with(a, {}, DType::Int32)};
      })
      .composed(lu_of_transpose)
      .samples({{floats(3, 3)}, {floats(2, 2, 2)}, {floats(0, 0)}});
  t.prim("cholesky_inverse(Tensor l, bool upper) -> Tensor")
      .kind(Kind::Whole)
      .doc("A⁻¹, where l is the Cholesky factor of A, or its adjoint if upper.")
      .type([](const Args& args) {
        const Type& l = squares("cholesky_inverse", args);
        return std::vector<Type>{with(l, {columns(l), columns(l)})};
      })
      .composed(inverse_from_cholesky)
      .samples({{floats(3, 3).in(1, 2), false}, {floats(2, 2, 2).in(1, 2), true}, {floats(0, 0), false}});
  t.prim("householder_product(Tensor a, Tensor tau) -> Tensor")
      .kind(Kind::Whole)
      .doc("The first columns of the product of geqrf's reflectors, as many as a has.")
      .type([](const Args& args) {
        const Type &a = matrices("householder_product", args), &tau = operand(args, 1);
        auto known_more = [](Expr x, Expr y) {
          return x.is_constant() && y.is_constant() && x.constant() > y.constant();
        };
        BRASA_CHECK(
            tau.dtype == a.dtype && tau.rank() == a.rank() - 1 &&
                may_equal(Shape(a.shape.begin(), a.shape.end() - 2), Shape(tau.shape.begin(), tau.shape.end() - 1)) &&
                !known_more(columns(a), rows(a)) && !known_more(tau.shape.back(), columns(a)),
            "householder_product: expected reflectors and as many numbers of each batch, got ", a, " and ", tau);
        return std::vector<Type>{with(a, {rows(a), columns(a)})};
      })
      .composed(product_of_reflectors)
      .samples({{floats(4, 3), floats(3)}, {floats(2, 4, 3), floats(2, 2)}, {floats(3, 0), floats(0)}});
}

}  // namespace factorisation

namespace prim {

std::array<Value, 3> lu_of_transpose(Value a) {
  std::vector<Value> r = taken_or_composed("prim::lu_of_transpose", {a});
  return {r[0], r[1], r[2]};
}
Value cholesky_inverse(Value l, bool upper) { return taken_or_composed("prim::cholesky_inverse", {l, upper})[0]; }
Value householder_product(Value a, Value tau) { return taken_or_composed("prim::householder_product", {a, tau})[0]; }

}  // namespace prim
}  // namespace brasa::ops
