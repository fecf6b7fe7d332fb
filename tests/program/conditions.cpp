#include "program/conditions.h"

#include <gtest/gtest.h>

namespace brasa::program {
namespace {

using ir::Expr;

TEST(Conditions, HoldAsTheirFacts) {
  Expr a = Expr::size(0), b = Expr::size(1), c = Expr::size(2);
  Conditions conditions({{a, Expr(4), true}, {a, b, false}, {a * b, c, true}});
  for (int64_t x = 3; x < 6; ++x)
    for (int64_t y = 3; y < 6; ++y)
      for (int64_t z : {x * y, x + y}) {
        int64_t symbols[] = {x, y, z};
        EXPECT_EQ(conditions.hold(symbols), x == 4 && x != y && x * y == z) << x << " " << y << " " << z;
      }
}

TEST(Conditions, TheFirstThatFails) {
  Expr a = Expr::size(0), b = Expr::size(1);
  Conditions conditions({{a, Expr(1), false}, {a, b, true}});
  int64_t symbols[] = {2, 3};
  const ir::Fact* failed = conditions.failed(symbols);
  ASSERT_TRUE(failed);
  EXPECT_EQ(*failed, (ir::Fact{a, b, true}));
  EXPECT_TRUE(Conditions().hold(nullptr));
}

}  // namespace
}  // namespace brasa::program
