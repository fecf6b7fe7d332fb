#include <brasa/compile.h>

#include <algorithm>
#include <functional>

#include "tensor/util.h"

// Dense linear algebra of complex matrices: what the factors multiply to, and derivatives against differences.
namespace brasa {
namespace {

using namespace testing;

Tensor complex_numbers(IntArrayRef sizes, double shift = 0) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  Tensor i = arange(n, kFloat64);
  return complex((i * 1.37 + 0.4 + shift).sin(), (i * i * 0.61 + 1.1 + shift).cos()).reshape(sizes);
}
Tensor positive_definite(const Tensor& a) {
  return a.matmul(adjoint(a)) + eye(a.size(-1), kFloat64).to(a.scalar_type());
}
// Of every element another one, and both parts count.
Tensor weighed(const Tensor& x) { return real((complex_numbers(x.sizes(), 2.5) * x).sum()); }
Tensor squares(const Tensor& x) { return real(x * x.conj_physical()); }

void expect_near(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.sizes(), b.sizes());
  ASSERT_EQ(a.scalar_type(), b.scalar_type());
  if (a.numel() == 0) return;
  EXPECT_LT((a - b).abs().max().item<double>(), tolerance) << a << "\n" << b;
}

class Products : public ::testing::TestWithParam<DType> {
 protected:
  Tensor input(IntArrayRef sizes) const { return complex_numbers(sizes).to(GetParam()); }
  double tolerance() const { return GetParam() == kComplexFloat ? 2e-5 : 1e-12; }
  void same(const Tensor& a, const Tensor& b) const { expect_near(a, b, tolerance()); }
};

TEST_P(Products, OfInversesAndSolutions) {
  Tensor a = input({2, 4, 4}), b = input({2, 4, 3}), one = eye(4, kFloat64).to(GetParam()).expand({2, 4, 4});
  same(a.matmul(linalg_inv(a)), one);
  same(a.matmul(linalg_solve(a, b)), b);
  auto [lu, pivots] = linalg_lu_factor(a);
  same(adjoint(a).matmul(linalg_lu_solve(lu, pivots, b, true, true)), b);
  auto [sign, size] = linalg_slogdet(a);
  EXPECT_EQ(size.scalar_type(), real_part_of(GetParam()));
  same(sign * size.exp(), linalg_det(a));
}

// Large matrices are factorised where they lie.
TEST_P(Products, OfCholesky) {
  for (int64_t n : {5, 300}) {
    Tensor a = input({2, n, n}), p = positive_definite(a / static_cast<double>(n));
    auto [l, info] = linalg_cholesky_ex(p);
    same(l.matmul(adjoint(l)), p);
    EXPECT_TRUE(l.equal(tril(l)));
    auto [u, of_upper] = linalg_cholesky_ex(p, true);
    same(adjoint(u).matmul(u), p);
    EXPECT_EQ(info.abs().sum().item<int64_t>() + of_upper.abs().sum().item<int64_t>(), 0);
    Tensor negative = p.clone();
    negative.index_put_({1, 3, 3}, -1);
    Tensor failed = std::get<1>(linalg_cholesky_ex(negative));
    EXPECT_EQ(failed[0].item<int64_t>(), 0);
    EXPECT_EQ(failed[1].item<int64_t>(), 4);
  }
}

TEST_P(Products, OfFactors) {
  Tensor tall = input({2, 5, 3}), a = input({4, 4}), p = positive_definite(a);
  auto [pm, l, u] = linalg_lu(tall);
  same(pm.matmul(l).matmul(u), tall);
  auto [q, r] = linalg_qr(tall);
  same(q.matmul(r), tall);
  same(adjoint(q).matmul(q), eye(3, kFloat64).to(GetParam()).expand({2, 3, 3}));
  auto [reflectors, tau] = geqrf(tall);
  same(linalg_householder_product(reflectors, tau), q);
  same(ormqr(reflectors, tau, tall, true, true).narrow(1, 0, 3), r);
  Tensor factor = linalg_cholesky(p), upper = linalg_cholesky(p, true);
  same(factor.matmul(adjoint(factor)), p);
  same(adjoint(upper).matmul(upper), p);
  for (bool hermitian : {false, true}) {
    Tensor m = hermitian ? p : a + a.transpose(0, 1);
    auto [ld, at] = linalg_ldl_factor(m, hermitian);
    same(m.matmul(linalg_ldl_solve(ld, at, a, hermitian)), a);
  }
}

TEST_P(Products, OfVectors) {
  Tensor a = input({4, 4}), h = a + adjoint(a), wide = input({2, 3, 5});
  auto [w, v] = linalg_eigh(h);
  EXPECT_EQ(w.scalar_type(), real_part_of(GetParam()));
  same((v * w).matmul(adjoint(v)), h);
  same(linalg_eigvalsh(h, "U"), w);
  auto [u, s, vh] = linalg_svd(wide, false);
  EXPECT_EQ(s.scalar_type(), real_part_of(GetParam()));
  same((u * s.unsqueeze(-2)).matmul(vh), wide);
  same(wide.matmul(linalg_pinv(wide)).matmul(wide), wide);
  auto [values, vectors] = linalg_eig(a);
  same(a.matmul(vectors), vectors * values);
  same(squares(vectors).sum(0), ones({4}, real_part_of(GetParam())));
}

INSTANTIATE_TEST_SUITE_P(ComplexMatrices, Products, ::testing::Values(kComplexFloat, kComplexDouble));

struct Function {
  const char* name;
  std::vector<int64_t> sizes;
  std::function<Tensor(const Tensor&)> loss;
};
void PrintTo(const Function& f, std::ostream* out) { *out << f.name; }

class Derivatives : public ::testing::TestWithParam<Function> {};

// The gradient g of a real L by a complex x: L(x + h d) - L(x - h d) = 2 h Re Σ conj(g) d.
TEST_P(Derivatives, MatchDifferences) {
  const Function& f = GetParam();
  Tensor x = complex_numbers(f.sizes), d = complex_numbers(f.sizes, 0.7);
  constexpr double h = 1e-6;
  double expected = ((f.loss(x + d * h) - f.loss(x - d * h)) / (2 * h)).item<double>();
  std::optional<Tensor> eager;
  for (const char* backend : {"", "inductor", "interpreter"}) {
    Tensor leaf = x.clone().requires_grad_(true);
    Tensor loss = *backend ? compile(f.loss, {.fullgraph = true, .backend = backend})(leaf) : f.loss(leaf);
    loss.backward();
    double slope = real(leaf.grad().conj_physical() * d).sum().item<double>();
    EXPECT_NEAR(slope, expected, 1e-6 * (1 + std::fabs(expected))) << backend;
    if (!eager) eager = leaf.grad();
    expect_near(leaf.grad(), *eager, 1e-8 * (1 + eager->abs().max().item<double>()));
  }
}

INSTANTIATE_TEST_SUITE_P(
    ComplexMatrices, Derivatives,
    ::testing::Values(
        Function{"inv", {2, 3, 3}, [](const Tensor& x) { return weighed(linalg_inv(x)); }},
        Function{"solve", {3, 3}, [](const Tensor& x) { return weighed(linalg_solve(x, x.matmul(x), false)); }},
        Function{"det", {3, 3}, [](const Tensor& x) { return weighed(linalg_det(x)); }},
        Function{"slogdet",
                 {3, 3},
                 [](const Tensor& x) {
                   auto [sign, size] = linalg_slogdet(x);
                   return weighed(sign) + size;
                 }},
        Function{"lu tall", {4, 3}, [](const Tensor& x) { return weighed(std::get<0>(linalg_lu_factor(x))); }},
        Function{"lu wide", {3, 4}, [](const Tensor& x) { return weighed(std::get<0>(linalg_lu_factor(x))); }},
        Function{"triangular",
                 {3, 3},
                 [](const Tensor& x) {
                   return weighed(std::get<0>(triangular_solve(x.matmul(x), x, true, true))) +
                          weighed(linalg_solve_triangular(x, x.sin(), false, false));
                 }},
        Function{"cholesky", {3, 3}, [](const Tensor& x) { return weighed(linalg_cholesky(positive_definite(x))); }},
        Function{"cholesky solve",
                 {3, 3},
                 [](const Tensor& x) {
                   return weighed(cholesky_solve(x, linalg_cholesky(positive_definite(x), true), true));
                 }},
        Function{"qr",
                 {4, 3},
                 [](const Tensor& x) {
                   auto [q, r] = linalg_qr(x);
                   return weighed(q) + weighed(r);
                 }},
        Function{"qr wide",
                 {3, 4},
                 [](const Tensor& x) {
                   auto [q, r] = linalg_qr(x);
                   return weighed(q) + weighed(r);
                 }},
        Function{"reflectors",
                 {4, 3},
                 [](const Tensor& x) {
                   Tensor tau = x.select(0, 0), right = x.narrow(0, 1, 2);
                   return weighed(linalg_householder_product(x, tau)) +
                          weighed(ormqr(x, tau, adjoint(x), false, true)) + weighed(right);
                 }},
        Function{"eigh",
                 {3, 3},
                 [](const Tensor& x) {
                   auto [w, v] = linalg_eigh(x + adjoint(x));
                   return weighed(squares(v)) + weighed(w);
                 }},
        Function{"svd",
                 {4, 3},
                 [](const Tensor& x) {
                   auto [u, s, vh] = linalg_svd(x, false);
                   return weighed(squares(u)) + weighed(squares(vh)) + weighed(s) + weighed(u.matmul(vh));
                 }},
        Function{"svd wide",
                 {3, 4},
                 [](const Tensor& x) {
                   auto [u, s, vh] = linalg_svd(x, false);
                   return weighed(squares(u)) + weighed(s) + weighed(u.matmul(vh));
                 }},
        Function{"pinv", {4, 3}, [](const Tensor& x) { return weighed(linalg_pinv(x)); }},
        Function{"eig",
                 {3, 3},
                 [](const Tensor& x) {
                   auto [w, v] = linalg_eig(x);
                   // The values come in any order.
                   return weighed((w * w * w).sum()) + weighed((squares(v) * real(w)).sum(1));
                 }},
        Function{
            "square root", {3, 3}, [](const Tensor& x) { return weighed(linalg_matrix_sqrth(positive_definite(x))); }},
        Function{"exponential", {3, 3}, [](const Tensor& x) { return weighed(linalg_matrix_exp(x)); }}),
    [](const ::testing::TestParamInfo<Function>& info) {
      std::string name = info.param.name;
      std::replace(name.begin(), name.end(), ' ', '_');
      return name;
    });

}  // namespace
}  // namespace brasa
