#include <gtest/gtest.h>

#include "check.h"
#include "ops/algebra.h"
#include "ops/linear_algebra.h"
#include "ops/shapes.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using ops::operator*, ops::operator+;
using Values = std::vector<Value>;
namespace prim = ops::prim;

// Any order of entries, rows without one, entries of one place, and columns that do and do not fill the blocks of a row.
TEST(SparseProduct, AnySize) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t columns : {0, 1, 5, 64, 130})
      for (int64_t entries : {0, 1, 40})
        check_both(
            {{DType::Int64, {entries}, 0, 6}, {DType::Int64, {entries}, 0, 8}, {t, {entries}}, {t, {9, columns}}},
            [](const Values& v) {
              return Values{ops::call("prim::sparse_mm", {v[0], v[1], v[2], v[3], ops::int_arg({7})})};
            },
            1e-5);
}

TEST(Sort, LongLinesOfIntegers) {
  for (DType t : {DType::Int64, DType::Int32, DType::Int16, DType::UInt8})
    for (bool down : {false, true})
      check_both({{t, {2, 700, 2}, t == DType::UInt8 ? 0.0 : -100.0, 100}}, [down](const Values& v) {
        auto [a, b] = prim::sort(v[0], 1, down);
        return Values{a, b};
      });
}

// Lines in which few or many different elements stand, of any length, both zeros, and the least, the greatest and the middle of them.
TEST(Sort, Selection) {
  for (DType t : {DType::Float32, DType::BFloat16, DType::Float64, DType::Int64, DType::UInt8})
    for (double bound : {2.0, 1e5})
      for (int64_t n : {1, 17, 100, 128, 129, 300, 3000})
        for (bool down : {false, true})
          check({{t, {2, n, 2}, t == DType::UInt8 ? 0.0 : -bound, t == DType::UInt8 ? 200 : bound}},
                [&](const Values& v) {
                  // Zeros of both signs and equal ones, or NaN for half of them.
                  Value x = is_floating(t) ? prim::unary(bound == 2 ? "ceil" : "sqrt", v[0]) : v[0];
                  Values out;
                  for (int64_t first : {int64_t{0}, n / 2, n - 1, n / 3})
                    for (int64_t count : {int64_t{0}, int64_t{1}, n / 5, n - first}) {
                      auto [a, b] = prim::sort(x, 1, down, first, std::min(count, n - first));
                      out.insert(out.end(), {a, b});
                    }
                  return out;
                });
}

// Rows of few or many different elements, some of them equal, some with NaN; none, one, and more than are compared as a whole.
TEST(RowGroups, AnySize) {
  for (DType t : {DType::Float32, DType::BFloat16, DType::Float64, DType::Int64, DType::UInt8, DType::Bool})
    for (double bound : {2.0, 1e5})
      for (int64_t rows : {0, 1, 9, 400})
        for (int64_t columns : {0, 1, 3})
          for (bool sorted : {false, true})
            check({{t, {rows, columns}, is_floating(t) || t == DType::Int64 ? -bound : 0.0, std::min(bound, 200.0)}},
                  [&](const Values& v) {
                    Value x = is_floating(t) ? prim::unary(bound == 2 ? "ceil" : "sqrt", v[0]) : v[0];
                    return ops::call_all("prim::row_groups", {x, sorted});
                  });
}

// Masks of several pieces and of a few elements, with few, some and all true; room for fewer places, and for more.
TEST(Positions, AnySize) {
  for (int64_t size : {0, 1, 8, 61, 70'000})
    for (double share : {0.0, 0.001, 0.5, 1.0})
      for (int64_t count : {int64_t{0}, int64_t{5}, size / 2, size + 3})
        check({{DType::Float32, {size}, 0, 1}}, [&](const Values& v) {
          return ops::call_all("prim::positions", {ops::le(v[0], share), ir::Expr(count)});
        });
}

// More operands than a kernel takes, some empty, some strided, some computed.
TEST(Concat, ManyOperands) {
  for (DType t : {DType::Bool, DType::Int16, DType::Float32, DType::Float64})
    for (int64_t dim : {0, 1, 2})
      check_both({{t, {3, 4, 2}, 0, 2}, {t, {3, 4, 2}, 0, 2, {2, 6, 1}}}, [dim](const Values& v) {
        Values all;
        for (int i = 0; i < 20; ++i) {
          Value x = i % 2 ? v[1] : i % 3 ? v[0] : ops::maximum(v[0], v[1]);
          all.push_back(i % 5 ? ops::narrow(x, dim, i % 2, 1) : ops::narrow(x, dim, 0, 0));
        }
        return Values{prim::concat(all, dim)};
      });
}

// One number of each, in more blocks than are copied in turn.
TEST(Concat, ManyNumbers) {
  for (DType t : {DType::UInt8, DType::Int16, DType::Float32, DType::Float64})
    for (int64_t blocks : {0, 1, 31, 70})
      check_both({{t, {blocks, 1}, 0, 100}, {t, {blocks, 1}, 0, 100}, {t, {blocks, 2}, 0, 100}}, [](const Values& v) {
        Values equal, others = {v[2]};
        for (int i = 0; i < 11; ++i) {
          equal.push_back(v[i % 2]);
          others.push_back(v[i % 3 ? 0 : 2]);
        }
        return Values{prim::concat(equal, 1), prim::concat(others, 1)};
      });
}

// Wide matrices are factored by their square; all are turned in squares that overlap at the ends.
TEST(Lu, AnySize) {
  for (DType t : {DType::Float32, DType::Float64})
    for (auto [m, n] : {std::pair<int64_t, int64_t>{1, 30}, {3, 3}, {5, 40}, {12, 13}, {21, 17}, {40, 5}})
      check_both(
          {{t, {2, m, n}}},
          [](const Values& v) {
            std::array<Value, 3> r = ops::prim::lu(v[0]);
            return Values(r.begin(), r.end());
          },
          t == DType::Float32 ? 1e-3 : 1e-9);
}

// Triangles that are halved and those that are not, of all kinds, with few right sides, many, and triangles.
TEST(TriangularSolve, AnySize) {
  for (DType t : {DType::Float32, DType::Float64})
    for (int64_t n : {1, 65, 150})
      for (int64_t columns : {1, 16, 40})
        for (int kind = 0; kind < 8; ++kind)
          check_both(
              {{t, {n, n}, 1, 2}, {t, {n, columns}}},
              [&](const Values& v) {
                Value small = v[0] * ops::scalar(0.3 / static_cast<double>(n), t), a = small + ops::identity_like(v[0]);
                ops::Triangle how{.upper = kind % 2 > 0, .transposed = kind / 2 % 2 > 0, .unit = kind / 4 > 0};
                Value inverse = ops::prim::triangular_solve(a, ops::identity_like(a), how);
                Value of_triangle = ops::prim::triangular_solve(a, ops::tril(small), how);
                return Values{ops::prim::triangular_solve(a, v[1], how), inverse, of_triangle};
              },
              t == DType::Float32 ? 1e-4 : 1e-12);
}

}  // namespace
}  // namespace brasa::compiler
