#include <gtest/gtest.h>

#include "check.h"
#include "ops/algebra.h"

namespace brasa::compiler {
namespace {

using namespace testing;
using Values = std::vector<ir::Value>;
namespace prim = ops::prim;
using ops::operator*;

// Rows that are written into their own memory, which is contiguous or not; and that depend on what is overwritten.
TEST(Scatter, IntoItsOperand) {
  for (bool symbolic : {false, true})
    for (const std::vector<int64_t>& strides : {std::vector<int64_t>{}, std::vector<int64_t>{1, 9}}) {
      Options o;
      o.symbolic = symbolic;
      o.into = {0};
      std::vector<In> in = {
          {DType::Float32, {9, 5}, -2, 2, strides}, {DType::Int64, {6}, 0, 8}, {DType::Float32, {6, 5}}};
      for (const char* how : {"add", "max"})
        check(in, [how](const Values& v) { return Values{prim::scatter(v[0], {v[1]}, v[2], {0}, how)}; }, o);
      check(
          in,
          [](const Values& v) {
            return Values{prim::scatter(v[0], {v[1]}, prim::gather(v[0], {v[1]}, {0}) * v[2], {0}, "add")};
          },
          o);
      check(in, [](const Values& v) { return Values{prim::scatter(v[0] * v[0], {v[1]}, v[2], {0}, "add")}; }, o);
    }
}

TEST(Scatter, ReportsOneKernelForItsOwnMemory) {
  Options o;
  o.into = {0};
  Report r = check(
      {{DType::Float32, {9, 5}}, {DType::Int64, {6}, 0, 8}, {DType::Float32, {6, 5}}},
      [](const Values& v) { return Values{prim::scatter(v[0], {v[1]}, v[2], {0}, "add")}; }, o);
  EXPECT_EQ(r.kernels.size(), 1u);
}

}  // namespace
}  // namespace brasa::compiler
