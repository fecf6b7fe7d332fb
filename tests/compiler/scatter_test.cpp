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

// What is only reshaped on its way out is not copied; what others read, too, is left where it was.
TEST(Scatter, ReshapedResultIsMadeWhereItGoes) {
  const std::vector<In> in = {{DType::Float32, {9, 6}}, {DType::Int64, {6}, 0, 8}, {DType::Float32, {6, 6}}};
  for (bool symbolic : {false, true}) {
    Options o;
    o.symbolic = symbolic;
    auto reshaped = [](const Values& v) {
      ir::Value x = prim::scatter(v[0], {v[1]}, v[2], {0}, "add");
      return Values{prim::reshape(x, {ops::size_of(x, 0) * ops::size_of(x, 1)})};
    };
    EXPECT_EQ(check(in, reshaped, o).kernels.size(), 1u);
    auto twice = [&](const Values& v) { return Values{reshaped(v)[0], reshaped(v)[0]}; };
    check(in, twice, o);
    auto read_beside = [](const Values& v) {
      ir::Value x = prim::scatter(v[0], {v[1]}, v[2], {0}, "add"),
                flat = prim::reshape(x, {ops::size_of(x, 0) * ops::size_of(x, 1)});
      return Values{flat, x * x, prim::reduce(flat, {0}, "max")};
    };
    check(in, read_beside, o);
    auto sorted = [](const Values& v) {
      ir::Value x = prim::sort(v[0], 1, false)[0];
      return Values{prim::reshape(x, {ops::size_of(x, 0) * ops::size_of(x, 1)})};
    };
    check(in, sorted, o);
    Options into = o;
    into.into = {2};
    check(
        in,
        [](const Values& v) {
          ir::Value x = prim::scatter(v[0], {v[1]}, v[2], {0}, "add");
          return Values{prim::reshape(prim::slice(x, {0, 0}, {6, 6}, {1, 1}), ops::shape_of(v[2]))};
        },
        into);
  }
}

}  // namespace
}  // namespace brasa::compiler
