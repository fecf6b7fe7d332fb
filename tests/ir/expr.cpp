#include "ir/expr.h"

#include <brasa/error.h>
#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "ir/expr_table.h"
#include "ir/expr_walk.h"

namespace brasa::ir {
namespace {

TEST(Expr, EqualExpressionsAreOneNode) {
  Expr s = Expr::size(0), t = Expr::size(1);
  EXPECT_EQ((s + t) * 2 - t, s * 2 + t);
  EXPECT_EQ((s + 1) * (s - 1), s * s - 1);
  EXPECT_EQ(str((s + 3) * t), "s0*s1 + s1*3");
  EXPECT_EQ(s - s, Expr(0));
}

TEST(Expr, DivisionUndoesWhatLinearisationDid) {
  Expr c = Expr::size(0, 1), i = Expr::range(0, Expr(7)), j = Expr::range(1, c);
  Expr linear = i * c + j;
  EXPECT_EQ(floordiv(linear, c), i);
  EXPECT_EQ(mod(linear, c), j);
  Expr k = Expr::range(2, Expr(4));
  EXPECT_EQ(floordiv(i * 8 + k, 8), i);
  EXPECT_EQ(floordiv(i * 8 + k * 2 + 1, 2), i * 4 + k);
  EXPECT_EQ(mod(floordiv(i * 12 + k, 4), 3), Expr(0));
}

// As where sizes are those of what was joined, or of an image without its border.
TEST(Expr, DivisionBySums) {
  Expr s = Expr::size(0, 1), t = Expr::size(1), c = s + t, pixels = (s + 2) * (t + 3);
  Expr i = Expr::range(0, Expr(7)), j = Expr::range(1, Expr(2)), k = Expr::range(2, c), p = Expr::range(3, pixels);
  EXPECT_EQ(floordiv(i * c * 2 + j * c + k, c * 2), i);
  EXPECT_EQ(mod(i * c * 2 + j * c + k, c * 2), j * c + k);
  EXPECT_EQ(floordiv((i * 4 + j) * c + k, c), i * 4 + j);
  EXPECT_EQ(floordiv(i * pixels * 2 + j * pixels + p, pixels * 2), i);
  EXPECT_EQ(mod(floordiv(i * pixels * 2 + j * pixels + p, pixels), 2), j);
  EXPECT_EQ(floordiv(s + 9, s + 2) - 1, floordiv(Expr(7), s + 2));
  EXPECT_EQ(floordiv(s + 1, s + 2), Expr(0));
}

// As where two axes of three run in one loop.
TEST(Expr, DivisionByAProductOfWhatIsWithin) {
  Expr m = floordiv(Expr::size(0), 2), n = floordiv(Expr::size(1), 2);
  Expr i = Expr::range(0, n * 2), j = Expr::range(1, m), linear = i * m + j;
  EXPECT_EQ(floordiv(linear, n * m), floordiv(i, n));
  EXPECT_EQ(mod(linear, n * m), mod(i, n) * m + j);
  EXPECT_EQ(floordiv(linear * 4 + 3, n * m * 8), floordiv(i, n * 2));
  EXPECT_EQ(n * m * floordiv(linear, n * m) + m * mod(i, n) + j, linear);
}

// What is halved twice is quartered, whatever comes between: sizes of a chain of windows are those of one window.
TEST(Expr, DivisionOfWhatWasDivided) {
  Expr s = Expr::size(0), t = min(Expr(62), s * 2);
  EXPECT_EQ(ceildiv(ceildiv(t, 2), 2), ceildiv(t, 4));
  EXPECT_EQ(floordiv(floordiv(t + 1, 2) - 5, 2) + 1, floordiv(t - 5, 4));
  EXPECT_EQ(floordiv(s + floordiv(t, 3) - 1, 5), floordiv(floordiv(t, 3) - 1 + s, 5));
  EXPECT_EQ(floordiv(s * 5 + floordiv(t, 3) - 7, 5), s + floordiv(t - 21, 15));
}

TEST(Expr, FloorsNegativeNumbers) {
  EXPECT_EQ(floordiv(Expr(-7), 2), Expr(-4));
  EXPECT_EQ(mod(Expr(-7), 2), Expr(1));
  EXPECT_EQ(ceildiv(Expr(7), 2), Expr(4));
}

TEST(Expr, BoundsDecideComparisons) {
  Expr n = Expr::size(0, 2), i = Expr::range(0, n);
  EXPECT_EQ(provably_less(i, n), true);
  EXPECT_EQ(provably_less(n, i), false);
  EXPECT_EQ(provably_equal(n, Expr(1)), false);
  EXPECT_EQ(provably_equal(n, Expr(3)), std::nullopt);
  EXPECT_EQ(provably_equal(Expr::size(1, 0, 8), Expr(3)), false);
  EXPECT_TRUE(provably_divisible(Expr::size(1, 0, 8) * n, 4));
  EXPECT_EQ(min(i, n), i);
}

// Random expressions of two kinds of symbols keep their value through the normal form.
TEST(Expr, NormalFormKeepsTheValue) {
  uint64_t state = 12345;
  auto random = [&](int64_t n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state >> 33) % static_cast<uint64_t>(n));
  };
  Expr n = Expr::size(0, 1), i = Expr::range(0, n), j = Expr::range(1, Expr(6));
  for (int trial = 0; trial < 2000; ++trial) {
    int64_t nv = 1 + random(9), iv = random(nv), jv = random(6);
    auto value = [&](const ExprNode& s) { return s.kind == ExprKind::Size ? nv : s.id == 0 ? iv : jv; };
    std::vector<std::pair<Expr, int64_t>> pool = {{n, nv}, {i, iv}, {j, jv}, {Expr(3), 3}, {Expr(2), 2}};
    for (int step = 0; step < 5; ++step) {
      auto [a, av] = pool[random(static_cast<int64_t>(pool.size()))];
      auto [b, bv] = pool[random(static_cast<int64_t>(pool.size()))];
      auto floor = [](int64_t x, int64_t y) { return x / y - (x % y != 0 && (x < 0) != (y < 0)); };
      int op = static_cast<int>(random(6));
      switch (op) {
        case 0: pool.push_back({a + b, av + bv}); break;
        case 1: pool.push_back({a - b, av - bv}); break;
        case 2: pool.push_back({a * b, av * bv}); break;
        case 3:
          if (b->min > 0) pool.push_back({floordiv(a, b), floor(av, bv)});
          break;
        case 4:
          if (b->min > 0) pool.push_back({mod(a, b), av - bv * floor(av, bv)});
          break;
        case 5: pool.push_back({max(a, b), std::max(av, bv)}); break;
      }
      auto [e, expected] = pool.back();
      ASSERT_EQ(evaluate(e, value), expected) << str(e) << " from op " << op << " of " << str(a) << " and " << str(b)
                                              << " with s0=" << nv << " r0=" << iv << " r1=" << jv;
      ASSERT_LE(e->min, expected) << str(e);
      ASSERT_GE(e->max, expected) << str(e);
    }
  }
}

// As `x.slice(0, 1, -1)` makes them, one upon the other: each mentions the last one several times.
Expr sliced(Expr s) { return max(min(Expr(1), s), max(Expr(0), s - 1)) - min(Expr(1), s); }

TEST(Expr, NestedSizesCostWhatTheirPartsCost) {
  Expr deep = Expr::size(0), other = deep;
  for (int i = 0; i < 60; ++i) deep = sliced(deep);
  EXPECT_EQ(deep->weight, kLargestWeight);
  auto value = [](const ExprNode&) { return int64_t{130}; };
  EXPECT_EQ(evaluate(deep, value), 10);
  Expr at = substitute(deep, [](Expr) { return std::optional(Expr(121)); });
  EXPECT_EQ(at, Expr(1));
  EXPECT_EQ(*deep->symbols, std::vector{other});
  EXPECT_LT(str(deep).size(), 20000u);
  EXPECT_EQ(provably_less(deep, deep + 1), true);
  Expr pooled = Expr::size(0, 1);
  for (int i = 0; i < 40; ++i) pooled = min(ceildiv(pooled, 2), floordiv(pooled - 1, 2) + 1);
  EXPECT_EQ(evaluate(pooled, [](const ExprNode&) { return int64_t{1} << 40; }), 1);
}

// Each is made of the one before, and is written to a graph's depth.
Expr nested(int depth, int64_t salt) {
  Expr e = Expr::size(0);
  for (int i = 0; i < depth; ++i) e = max(floordiv(e, 2), e - 1000000 * (salt + 1) - i);
  return e;
}

TEST(Expr, WhatNobodyUsesGoes) {
  Expr kept = nested(50, -1);
  std::string text = str(kept);
  size_t before = ExprTable::size();
  for (int64_t salt = 0; salt < 500; ++salt) nested(50, salt);
  EXPECT_LT(ExprTable::size(), before + 70000);
  EXPECT_EQ(str(kept), text);
  EXPECT_EQ(nested(50, -1), kept);
}

TEST(Expr, ThreadsMakeAndDropTheSame) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([] {
      for (int64_t salt = 0; salt < 50; ++salt) {
        Expr a = nested(20, salt), b = nested(20, salt);
        EXPECT_EQ(a, b);
        EXPECT_EQ(evaluate(a - b, [](const ExprNode&) { return int64_t{5}; }), 0);
      }
    });
  for (std::thread& t : threads) t.join();
}

// Deeper than a small stack, and cheap for each level.
TEST(Expr, NestedThousandsDeep) {
  Expr a = nested(3000, 1), b = nested(3000, 2);
  EXPECT_NE(a, b);
  EXPECT_EQ(min(a, b), min(b, a));
  EXPECT_EQ(evaluate(a, [](const ExprNode&) { return int64_t{1} << 20; }), 0);
}

// What is remembered of large parts is of these symbols alone.
TEST(Expr, ValuesOfLargeOnes) {
  std::vector<Expr> levels = {Expr::size(0)};
  for (int i = 0; i < 300; ++i) levels.push_back(sliced(levels.back()) + mod(levels.back(), Expr::size(1)));
  for (int64_t s0 : {1000, 999, 1000})
    for (int64_t s1 : {3, 7})
      for (size_t more : {0, 2}) {
        std::vector<int64_t> symbols = {s0, s1};
        symbols.resize(symbols.size() + more, 5);
        for (const Expr& e : {levels[300], levels[2], levels[150]})
          EXPECT_EQ(value_of(e, symbols), evaluate(e, [&](const ExprNode& s) { return symbols[s.id]; })) << s0 << s1;
      }
  EXPECT_THROW(value_of(levels[300], std::vector<int64_t>{1000}), InternalError);
}

TEST(Expr, WhatDoesNotFitIsAnError) {
  constexpr int64_t kLowest = std::numeric_limits<int64_t>::min(), kHighest = std::numeric_limits<int64_t>::max();
  Expr s = Expr::size(0), lowest(kLowest), highest(kHighest);
  EXPECT_THROW(highest + 1, Error);
  EXPECT_THROW(highest * 2, Error);
  EXPECT_THROW(-lowest, Error);
  EXPECT_THROW(floordiv(lowest, -1), Error);
  EXPECT_EQ(mod(lowest, -1), Expr(0));
  EXPECT_EQ(mod(lowest, 3), Expr(1));
  EXPECT_EQ(str(s + lowest), "s0 + -9223372036854775808");
  EXPECT_THROW(evaluate(s * s, [](const ExprNode&) { return kHighest; }), Error);
  EXPECT_THROW(evaluate(s + 1, [](const ExprNode&) { return kHighest; }), Error);
}

// Text names the operands in an order of its own.
TEST(Expr, LimitsInEitherOrder) {
  Expr s0 = Expr::size(0), s1 = Expr::size(1), whole = s0 * floordiv(Expr(3), s0) + 1;
  EXPECT_EQ(max(whole, Expr(0)), whole);
  EXPECT_EQ(max(Expr(0), whole), whole);
  EXPECT_EQ(min(Expr(0), -whole), -whole);
  EXPECT_EQ(min(-whole, Expr(0)), -whole);
  Expr some = s0 * floordiv(min(Expr(4), s1) - 1, s0) + 1;
  EXPECT_EQ(max(some, Expr(0)), max(Expr(0), some));
}

}  // namespace
}  // namespace brasa::ir
