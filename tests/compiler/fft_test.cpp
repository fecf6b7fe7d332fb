#include <gtest/gtest.h>

#include "check.h"
#include "compiler/libraries/fourier/line.h"
#include "compiler/schedules/machine.h"
#include "ops/fourier.h"
#include "runtime/cpu/features.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using ops::operator*, ops::operator/, ops::operator-;
using Values = std::vector<ir::Value>;

// Sizes without elements, with one, of small factors, primes, and a product of a large prime.
TEST(Fft, AnySize) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t n : {0, 1, 2, 12, 53, 64, 73, 134, 149, 199, 211})
      for (bool forward : {false, true})
        check_both({{t, {3, n, 2}}, {t, {3, n, 2}}}, [forward](const Values& v) {
          auto [a, b] = ops::prim::fft(v[0], v[1], 1, forward);
          return Values{a, b};
        });
}

// Lines that fill vectors or do not, behind or beside each other.
TEST(Fft, AnyNumberOfLines) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t lines : {1, 7, 16, 19})
      for (int64_t n : {16, 30, 49}) {
        check_both({{t, {lines, n}}, {t, {lines, n}}}, [](const Values& v) {
          auto [a, b] = ops::prim::fft(v[0], v[1], 1, true);
          return Values{a, b};
        });
        check_both({{t, {n, lines}}, {t, {n, lines}}}, [](const Values& v) {
          auto [a, b] = ops::prim::fft(v[0], v[1], 0, false);
          return Values{a, b};
        });
      }
}

// What is split into rows and columns, a convolution that is, and columns of small factors beside rows of a large one.
TEST(Fft, LongLines) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t n : {1100, 2048, 1791, 1999, 2022, 2724}) {
      if (t == DType::Float32 && (n == 1791 || n > 2048)) continue;  // sums of so many cancel
      check_both({{t, {2, n}}, {t, {2, n}}}, [](const Values& v) {
        auto [a, b] = ops::prim::fft(v[0], v[1], 1, true);
        return Values{a, b};
      });
    }
}

// Complex numbers, real ones, results of which half is kept, by a factor, and those whose imaginary parts nobody reads: without copies.
TEST(Fft, PartsWhereTheyLie) {
  using ops::prim::concat, ops::prim::fft, ops::prim::reshape, ops::prim::slice;
  for (DType t : {DType::Float32, DType::Float64})
    for (auto [lines, n] : {std::pair{3, 1},
                            {40, 5},
                            {19, 20},
                            {33, 53},
                            {40, 130},
                            {40, 398},
                            {1, 1032},
                            {3, 256},
                            {4, 1000},
                            {5, 337},
                            {4, 674}})
      for (bool forward : {false, true}) {
        if (t == DType::Float32 && n > 200) continue;  // sums of so many cancel
        check_both({{t, {lines, n, 2}}}, [n = n, forward](const Values& v) {
          const ir::Shape& shape = ops::shape_of(v[0]);
          auto part = [&](int64_t i) {
            return reshape(slice(v[0], {0, 0, i}, {shape[0], shape[1], 1}, {1, 1, 1}), {shape[0], shape[1]});
          };
          auto joined = [&](Value re, Value im, ir::Expr kept) {
            auto one = [&](Value x) {
              return reshape(slice(x, {0, 0}, {shape[0], kept}, {1, 1}), {shape[0], kept, 1});
            };
            return concat({one(re), one(im)}, 2);
          };
          ir::Expr half = ir::floordiv(shape[1], 2) + 1;
          auto [a, b] = fft(part(0), part(1), 1, forward);
          auto [c, d] = fft(part(1), ops::zeros_like(part(0)), 1, forward);
          auto [e, unread] = fft(part(0) * 2.0, part(1), 1, forward);
          auto [f, g] = fft(part(1), part(0), 0, forward);
          return Values{joined(a / static_cast<double>(n), -b / static_cast<double>(n), shape[1]), joined(c, d, half),
                        e, joined(f, g, shape[1])};
        });
      }
}

// Complex lines of which some lie beside each other, in runs of any length.
TEST(Fft, RunsOfLines) {
  using ops::prim::concat, ops::prim::fft, ops::prim::reshape, ops::prim::slice;
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t beside : {1, 2, 3, 7, 11})
      for (int64_t n : {2, 12, 37})
        check_both({{t, {5, n, beside, 2}}}, [](const Values& v) {
          ir::Shape s = ops::shape_of(v[0]), parts = s;
          parts.back() = 1;
          ir::Shape plane(s.begin(), s.end() - 1);
          auto part = [&](int64_t i) { return reshape(slice(v[0], {0, 0, 0, i}, parts, {1, 1, 1, 1}), plane); };
          auto [a, b] = fft(part(0), part(1), 1, true);
          auto [c, d] = fft(part(1), part(0), 1, true);
          return Values{concat({reshape(a, parts), reshape(b, parts)}, 3),
                        concat({reshape(c, parts), reshape(d, parts)}, 3)};
        });
}

// Complex results whose dimensions stand in another order, as a short-time transform's do.
TEST(Fft, TransposedResults) {
  using ops::prim::concat, ops::prim::fft, ops::prim::reshape, ops::prim::slice, ops::prim::transpose;
  for (auto [batch, lines, n] : {std::tuple{1, 40, 12}, {2, 19, 8}, {3, 1, 10}, {1, 1, 16}})
    check_both({{DType::Float32, {batch, lines, n}}}, [](const Values& v) {
      ir::Shape s = ops::shape_of(v[0]), kept = {s[0], s[1], ir::floordiv(s[2], 2) + 1};
      auto both = fft(v[0], ops::zeros_like(v[0]), 2, true);
      Value re = std::get<0>(both), im = std::get<1>(both);
      auto part = [&](Value x, const std::vector<int64_t>& order) {
        x = transpose(slice(x, {0, 0, 0}, kept, {1, 1, 1}), order);
        ir::Shape one = ops::shape_of(x);
        one.push_back(1);
        return reshape(x, one);
      };
      auto joined = [&](const std::vector<int64_t>& order) { return concat({part(re, order), part(im, order)}, 3); };
      return Values{joined({0, 2, 1}), joined({2, 0, 1}), concat({part(re, {0, 2, 1}), part(im * -1.0, {0, 2, 1})}, 3)};
    });
}

// Real numbers from half of their frequencies, in lanes, as one long line, and where a length has a large prime factor.
TEST(Fft, RealNumbersFromHalfTheirFrequencies) {
  for (DType t : {DType::Float32, DType::Float64})
    for (auto [lines, n] : {std::pair{3, 1}, {5, 2}, {40, 5}, {19, 20}, {33, 53}, {40, 130}, {1, 1032}, {3, 643}}) {
      if (t == DType::Float32 && n > 200) continue;  // sums of so many cancel
      ir::Expr size(n), half(n / 2 + 1);
      check_both({{t, {lines, n / 2 + 1, 2}}, {t, {n / 2 + 1, lines}}, {t, {}}}, [&](const Values& v) {
        auto part = [&](int64_t i) {
          ir::Expr count = ops::size_of(v[0], 0);
          return ops::prim::reshape(ops::prim::slice(v[0], {0, 0, i}, {count, half, 1}, {1, 1, 1}), {count, half});
        };
        auto reals = [&](Value re, Value im, int64_t dim, ir::Arg scale) {
          return ops::call("prim::fft_real", {re, im, dim, size, scale});
        };
        return Values{reals(part(0), part(1), 1, {}), reals(v[1], ops::zeros_like(v[1]), 0, v[2])};
      });
    }
}

// Vectors along one line give what lanes give, from numbers beside each other and in pairs, of which some are kept.
TEST(Fft, AlongALine) {
  for (int64_t n : {256, 1000, 1024, 1656, 1791, 16384}) {
    fourier::Stages<double> stages(n);
    ASSERT_TRUE(fourier::fills_vectors(stages)) << n;
    std::vector<double> memory(std::max(fourier::memory_for(stages), fourier::memory_along(stages)));
    std::vector<double> x(2 * n);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i * i % 1009));
    for (bool pairs : {false, true})
      for (int64_t kept : {n, n / 2 + 1, int64_t{1}}) {
        auto run = [&](auto transform) {
          std::vector<double> y(2 * n, 7.0);
          auto side = [&](double* at) {
            return fourier::Group<double>::Side{at, at + (pairs ? 1 : n), pairs ? 2 : 1, 1, {0}};
          };
          fourier::Group<double> g{side(x.data()), side(y.data()), kept};
          g.re_factor = 0.5, g.im_factor = -0.25;
          transform(stages, g, memory.data());
          return y;
        };
        std::vector<double> expected = run(fourier::run<double>), found = run(fourier::run_along<double>);
        for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-10) << n << " " << i;
      }
  }
  EXPECT_FALSE(fourier::fills_vectors(fourier::Stages<double>(64)));
  EXPECT_FALSE(fourier::fills_vectors(fourier::Stages<double>(263)));  // a prime
}

TEST(Fft, FillsTheVectorsOfThisProcessor) {
  Machine machine = machine_of(runtime::cpu::host_target(), 1);
  EXPECT_EQ(fourier::lanes<float>(), machine.lanes(4));
  EXPECT_EQ(fourier::lanes<double>(), machine.lanes(8));
}

}  // namespace
}  // namespace brasa::compiler
