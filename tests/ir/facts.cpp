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

TEST(Facts, ASizeThatEqualsAProductWithItself) {
  Expr a = Expr::size(0), b = Expr::size(1);
  Facts facts({3, 1});
  EXPECT_TRUE(facts.equal(a, a * b));
  EXPECT_EQ(facts.known(a), a);
}

}  // namespace
}  // namespace brasa::ir
