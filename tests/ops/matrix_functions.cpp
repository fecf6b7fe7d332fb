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

// The cofactors are its derivative, which a singular matrix has, too.
TEST(Determinant, OfASingularMatrixHasADerivative) {
  for (const char* name : {"aten::_linalg_det", "aten::linalg_det"}) {
    Tensor a = tensor({1.0, 2.0, 2.0, 4.0}).reshape({2, 2}).requires_grad_();
    call(name, {a})[0].backward();
    EXPECT_TRUE(allclose(a.grad(), tensor({4.0, -2.0, -2.0, 1.0}).reshape({2, 2}))) << name << a.grad();
  }
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

}  // namespace
}  // namespace brasa::test
