// Sizes of archives that are a multiple of a symbol and a number more, in both forms that sympy writes.
#include "import/affine.h"

#include <gtest/gtest.h>

namespace brasa::import {
namespace {

TEST(Affine, BothForms) {
  for (const char* text :
       {"2*s77 - 3", "-3 + s77*2", "Add(Mul(Integer(2), Symbol('s77', positive=True, integer=True)), Integer(-3))"}) {
    std::optional<Affine> a = affine_of(text);
    ASSERT_TRUE(a) << text;
    EXPECT_EQ(a->symbol, "s77");
    EXPECT_EQ(a->factor, 2);
    EXPECT_EQ(a->offset, -3);
  }
  EXPECT_EQ(affine_of("Symbol('_half', integer=True)")->factor, 1);
}

TEST(Affine, OtherExpressions) {
  for (const char* text :
       {"", "s0*s1", "s0 + s1", "s0//2", "FloorDiv(Symbol('s0'), Integer(2))", "Max(2, s0)", "Add(s0", "2*", "s0)",
        "Symbol('s0", "9223372036854775807*2*s0", "Integer(99999999999999999999)"})
    EXPECT_FALSE(affine_of(text)) << text;
  std::string deep;
  for (int k = 0; k < 100000; ++k) deep += "Add(";
  EXPECT_FALSE(affine_of(deep));
}

}  // namespace
}  // namespace brasa::import
