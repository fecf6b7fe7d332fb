#include "compiler/loops/cost.h"

#include <cmath>

#include "ir/text.h"
#include "loops/kernel.h"

namespace brasa::compiler::test {
namespace {

TEST(Cost, CountsCopiesAndIterations) {
  Kernel k;
  Expr n = Expr::size(0);
  Value a = k.f32(n), b = k.f32(4), out = k.f32(n * 4);
  Expr i = k.b.loop("unroll", 4), r = k.b.loop("vector", n, 8, 2);
  k.b.store(out, i * n + r, k.b.op("mul", {k.b.load(a, r), k.b.load(b, i)}));
  KernelCost cost = cost_of(k.graph, [](Expr) { return 10; });
  EXPECT_EQ(cost.code, 2 + 4 + 8 + 8);
  EXPECT_EQ(cost.run, 10 + 4 + 40 + 40);
  EXPECT_EQ(code_of(ir::print(k.graph)), cost.code);
  EXPECT_TRUE(std::isinf(cost_of(k.graph, [](Expr) { return std::nullopt; }).run));
}

// A step of 0 is no error here: nothing runs with it.
TEST(Cost, OfNothing) {
  Kernel k;
  Expr n = Expr::size(0);
  Value out = k.f32(n);
  Expr r = k.b.loop("parallel", ceildiv(Expr(100), n));
  k.b.store(out, r, k.b.constant(1.0, DType::Float32));
  EXPECT_TRUE(std::isfinite(cost_of(k.graph, [](Expr) { return 0; }).run));
}

// Loops whose ends depend on the loops around them.
TEST(Cost, OfTriangles) {
  Kernel k;
  Value out = k.f32(100 * 100);
  Expr row = k.b.loop("parallel", 100), r = k.b.loop("serial", row + 1);
  k.b.store(out, row * 100 + r, k.b.constant(1.0, DType::Float32));
  EXPECT_EQ(cost_of(k.graph, [](Expr) { return std::nullopt; }).run, 1 + 100 * 51);
}

}  // namespace
}  // namespace brasa::compiler::test
