#include "ir/facts.h"

#include <gtest/gtest.h>

namespace brasa::ir {
namespace {

TEST(Facts, FollowWhatWasLearntLater) {
  Expr a = Expr::size(0), b = Expr::size(1), c = Expr::size(2);
  Facts facts({1, 1, 7});
  EXPECT_TRUE(facts.equal(a, b));
  EXPECT_FALSE(facts.equal(a, c));
  EXPECT_TRUE(facts.equal(a, Expr(1)));
  EXPECT_EQ(facts.known(b), Expr(1));
  EXPECT_EQ(facts.known(b * c), c);
}

TEST(Facts, ASymbolThatEqualsAComputedSizeIsItsNumber) {
  Expr a = Expr::size(0), half = floordiv(Expr::size(1) + 1, 2);
  Facts facts({1, 2});
  EXPECT_TRUE(facts.equal(a, half));
  EXPECT_TRUE(facts.equal(a, Expr(1)));
  EXPECT_EQ(facts.known(a), Expr(1));
}

TEST(Facts, ASizeThatEqualsAProductWithItself) {
  Expr a = Expr::size(0), b = Expr::size(1);
  Facts facts({3, 1});
  EXPECT_TRUE(facts.equal(a, a * b));
  EXPECT_EQ(facts.known(a), a);
}

TEST(Facts, ASymbolBecomesTheMultipleThatItIs) {
  Expr a = Expr::size(0), b = Expr::size(1), c = Expr::size(2);
  Facts facts({64, 12, 64});
  EXPECT_TRUE(facts.equal(mod(a, 8), 0));
  EXPECT_FALSE(facts.equal(mod(b, 8), 0));
  EXPECT_TRUE(provably_divisible(facts.known(a * b), 8));
  EXPECT_FALSE(provably_divisible(facts.known(b), 8));
  EXPECT_TRUE(facts.equal(mod(b, 3), 0));
  EXPECT_TRUE(facts.equal(mod(b, 2), 0));
  EXPECT_TRUE(provably_divisible(facts.known(b), 6));
  EXPECT_TRUE(facts.equal(mod(facts.known(a), 4), 0));
  EXPECT_TRUE(facts.equal(c, a));
  EXPECT_TRUE(provably_divisible(facts.known(c), 8));
  EXPECT_EQ(str(facts.facts()[0]), "s0 % 8 == 0");
  EXPECT_EQ(str(facts.facts()[1]), "s1 % 8 != 0");
}

}  // namespace
}  // namespace brasa::ir
