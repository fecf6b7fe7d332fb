#include <gtest/gtest.h>

#include "compiler/check.h"
#include "ops/shapes.h"

namespace brasa::compiler::testing {
namespace {

using namespace ops;
using ir::Expr;

// As `x.slice(0, 1, -1)` cuts it.
Value sliced(Value x) {
  Expr n = size_of(x, 0), start = ir::min(1, n);
  return narrow(x, 0, start, ir::max(start, ir::max(0, n - 1)) - start);
}

// A kernel's sizes, places in memory and numbers are values of symbols that the run defines.
TEST(LargeSizes, OfEveryKernel) {
  Options options;
  options.symbolic = true;
  for (int64_t size : {40, 24, 5, 0})
    check(
        {{DType::Float32, {size, 3}}, {DType::Float32, {size}}},
        [](const std::vector<Value>& in) {
          Value x = in[0], y = in[1];
          for (int i = 0; i < 8; ++i) {
            x = sliced(x);
            y = sliced(y);
          }
          Value rows = sum(x, {1}) * y, n = size_tensor(size_of(y, 0), {}, DType::Float32);
          return std::vector<Value>{exp(rows - n), sum(x * x, {0})};
        },
        options);
}

}  // namespace
}  // namespace brasa::compiler::testing
