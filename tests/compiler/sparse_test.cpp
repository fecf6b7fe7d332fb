#include <gtest/gtest.h>

#include "check.h"
#include "ops/algebra.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using Values = std::vector<ir::Value>;
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

}  // namespace
}  // namespace brasa::compiler
