#include <brasa/brasa.h>
#include <gtest/gtest.h>

#include <cmath>

#include "ops/algebra.h"
#include "ops/builder.h"

// Functions of matrices whose values are known in closed form.
namespace brasa::test {
namespace {

// exp([[0, -t], [t, 0]]) turns by t. Norms from where the series alone does to where its result is squared ten times.
void check_turns(DType type, double tolerance) {
  for (double t : {0.0, 1e-3, 0.3, 0.99, 1.01, 2.9, 3.1, 12.0, 100.0, 2000.0}) {
    Tensor turn = linalg_matrix_exp(tensor({0.0, -t, t, 0.0}, type).reshape({2, 2})).to(DType::Float64);
    double most = tolerance * std::max(1.0, t);
    EXPECT_NEAR(turn[0][0].item<double>(), std::cos(t), most) << t;
    EXPECT_NEAR(turn[0][1].item<double>(), -std::sin(t), most) << t;
    EXPECT_NEAR(turn[1][0].item<double>(), std::sin(t), most) << t;
    EXPECT_NEAR(turn[1][1].item<double>(), std::cos(t), most) << t;
  }
}
TEST(MatrixExponential, OfAnAntisymmetricMatrixTurns) {
  check_turns(DType::Float32, 1e-6);
  check_turns(DType::Float64, 2e-15);
}

// A nilpotent matrix's series ends: every term but the last ones is seen alone.
TEST(MatrixExponential, OfAShiftHasTheTermsOfTheSeries) {
  constexpr int64_t kSize = 21;
  Tensor shift = zeros({kSize, kSize}, DType::Float64);
  shift.diagonal(1).fill_(1);
  Tensor e = linalg_matrix_exp(shift);
  double factor = 1;
  for (int64_t k = 0; k <= 18; factor /= static_cast<double>(++k))
    EXPECT_DOUBLE_EQ(e[0][k].item<double>(), factor) << k;
  EXPECT_EQ(e[1][0].item<double>(), 0);
}

// The cofactors are its derivative, which singular matrices have, too: of rank 2, whose first or last pivot is 0, and of rank 1 and 0.
TEST(Determinant, HasCofactorsAsDerivative) {
  auto cofactors = [](const Tensor& a) {
    Tensor out = zeros_like(a);
    for (int64_t i = 0; i < 3; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        int64_t k = (i + 1) % 3, l = (i + 2) % 3, m = (j + 1) % 3, n = (j + 2) % 3;
        out[i][j].copy_(a[k][m] * a[l][n] - a[k][n] * a[l][m]);
      }
    return out;
  };
  const std::vector<std::vector<double>> all = {{2, 1, 0, 1, 3, 1, 0, 1, 4},
                                                {0, 1, 2, 0, 3, 4, 0, 5, 7},
                                                {1, 2, 3, 4, 5, 6, 5, 7, 9},
                                                {1, 2, 3, 2, 4, 6, 3, 6, 9},
                                                std::vector<double>(9, 0.0)};
  for (const std::vector<double>& numbers : all)
    for (DType t : {DType::Float64, DType::Float32, DType::Complex128})
      for (const char* name : {"aten::_linalg_det", "aten::linalg_det"}) {
        Tensor a = tensor(numbers).reshape({3, 3}).to(t);
        if (is_complex(t)) a = a * tensor(std::complex<double>(0.5, 1.5));
        a.requires_grad_();
        Tensor d = call(name, {a})[0];
        d.backward(ones_like(d));
        double near = t == DType::Float32 ? 1e-5 : 1e-13;  // rounding of numbers up to some tens
        EXPECT_TRUE(allclose(a.grad(), cofactors(a.detach()).conj(), near, near)) << name << " " << a << a.grad();
      }
}

// So many products that a single operator asks for the number of rows, and of few columns.
TEST(Products, OfFewRows) {
  auto check = [](const Tensor& a, const Tensor& b) {
    Tensor sum = (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2);
    EXPECT_TRUE(allclose(matmul(a, b), sum, 1e-11, 1e-11)) << a.sizes() << b.sizes();
  };
  for (int64_t rows : {2, 3, 5, 8, 12, 15})
    for (int64_t columns : {20, 63, 100}) {
      int64_t k = (1 << 19) / (rows * columns) + 1;
      check(randn({rows, k}, DType::Float64), randn({k, columns}, DType::Float64));
      check(randn({k, rows}, DType::Float64).t(), randn({columns, k}, DType::Float64).t());
    }
  check(randn({150, 7, 30}, DType::Float64), randn({150, 30, 19}, DType::Float64));
}

// A chain's order follows from the sizes of a call, which its graph knows as symbols.
TEST(MultiDot, TakesTheCheapestOrderOfUnknownSizes) {
  for (bool narrow_end : {false, true}) {
    ir::Graph graph(ir::Level::Primitives);
    ir::Facts facts(narrow_end ? std::vector<int64_t>{64, 48, 40, 2} : std::vector<int64_t>{2, 40, 48, 64});
    ops::Builder builder(graph, facts);
    std::vector<ir::Value> chain;
    for (uint32_t i = 0; i < 3; ++i)
      chain.push_back(graph.add_input({DType::Float32, {ir::Expr::size(i), ir::Expr::size(i + 1)}, false}));
    ops::call("aten::linalg_multi_dot", {chain});
    std::vector<ir::Shape> products;
    for (const ir::Node* n : graph.nodes())
      if (n->op->name() == "prim::dot_general") products.push_back(n->types[0].shape);
    ASSERT_EQ(products.size(), 2u);
    EXPECT_EQ(products[0][0], ir::Expr::size(narrow_end ? 1 : 0));
    EXPECT_EQ(products[0][1], ir::Expr::size(narrow_end ? 3 : 2));
  }
}

// Only some of LAPACK's drivers give what is left; the one that is taken where none is named does not.
TEST(LeastSquares, ResidualsAreTheDrivers) {
  Tensor a = tensor({{1.0, 0.0}, {0.0, 1.0}, {0.0, 0.0}}, kFloat64), b = tensor({{1.0}, {2.0}, {3.0}}, kFloat64);
  for (const char* driver : {"gels", "gelsd", "gelss"})
    EXPECT_NEAR(std::get<1>(linalg_lstsq(a, b, {}, driver)).item<double>(), 9, 1e-12) << driver;
  EXPECT_EQ(std::get<1>(linalg_lstsq(a, b, {}, "gelsy")).numel(), 0);
  EXPECT_EQ(std::get<1>(linalg_lstsq(a, b)).numel(), 0);
}

// Some libraries' calls share memory without locks: of some hundred at once, one was wrong.
TEST(Solve, MatricesSideBySideDoNotMeet) {
  constexpr int64_t kCount = 4000;
  manual_seed(5);
  for (int64_t n : {5, 31}) {
    Tensor a = (randn({n, n}, kFloat64) + 9 * eye(n, kFloat64)).expand({kCount, n, n}), b = randn({n, 3}, kFloat64);
    Tensor x = linalg_solve(a, b.expand({kCount, n, 3})), inverse = linalg_inv(a);
    EXPECT_EQ((x != x[0]).sum().item<int64_t>(), 0) << n;
    EXPECT_EQ((inverse != inverse[0]).sum().item<int64_t>(), 0) << n;
    EXPECT_TRUE(allclose(a[0].matmul(x[0]), b, 1e-9, 1e-9)) << n;
  }
}

}  // namespace
}  // namespace brasa::test
