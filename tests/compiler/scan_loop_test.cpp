#include <gtest/gtest.h>

#include "check.h"
#include "ops/loop.h"
#include "ops/shapes.h"

// Loops over steps: compiled against interpreted, on every device, with constant and with symbolic sizes.
namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using ops::LoopOperands;
using Values = std::vector<Value>;
using Span = std::span<const Value>;
namespace prim = ops::prim;

// h' = tanh(x + h w), and a count of the steps.
Values recurrent(const Values& v, bool reverse) {
  using namespace ops;  // NOLINT: the algebra on Values
  LoopOperands loop{{v[0], full(0, {}, DType::Int64)}, {v[1]}, {v[2]}, size_of(v[1], 0), reverse};
  Values traces = scan_loop(loop, [](Span h, Span x, Span w) {
    Value next = ops::tanh(x[0] + matmul2(h[0], w[0]));
    return Values{next, h[1] + 1, sum(next * x[0], {1})};
  });
  traces.push_back(last_state(traces[0], loop));
  return traces;
}

TEST(ScanLoop, StatesItemsAndResults) {
  for (int64_t steps : {0, 1, 2, 7})
    for (bool reverse : {false, true})
      check_both(
          {{DType::Float32, {3, 5}}, {DType::Float32, {steps, 3, 5}}, {DType::Float32, {5, 5}, -0.5, 0.5}},
          [reverse](const Values& v) { return recurrent(v, reverse); }, 1e-5);
}

TEST(ScanLoop, SizesOfNothingAndOfOne) {
  for (int64_t n : {0, 1})
    check_both(
        {{DType::Float32, {n, 5}}, {DType::Float32, {3, n, 5}}, {DType::Float32, {5, 5}}},
        [](const Values& v) { return recurrent(v, false); }, 1e-5);
  check_both(
      {{DType::Float32, {2, 1}}, {DType::Float32, {3, 2, 1}}, {DType::Float32, {1, 1}}},
      [](const Values& v) { return recurrent(v, true); }, 1e-5);
}

// Every dtype moves; a state may be an operand that no step changes, an item, or an input with strides.
TEST(ScanLoop, StatesThatAreHandedOn) {
  for (DType t : {DType::Bool, DType::UInt8, DType::Int32, DType::Float16, DType::Float64})
    check_both({{t, {4}, 0, 2}, {t, {6, 4}, 0, 2}, {t, {4}, 0, 2, {2}}}, [](const Values& v) {
      LoopOperands loop{{v[0], v[2]}, {v[1]}, {v[0]}, ops::size_of(v[1], 0)};
      return ops::scan_loop(loop, [](Span s, Span x, Span w) { return Values{s[1], x[0], w[0], s[0]}; });
    });
}

TEST(ScanLoop, LoopsInLoops) {
  check_both(
      {{DType::Float32, {3}}, {DType::Float32, {4, 6, 3}, -0.5, 0.5}},
      [](const Values& v) {
        using namespace ops;  // NOLINT: the algebra on Values
        LoopOperands rows{{v[0]}, {v[1]}, {}, size_of(v[1], 0)};
        return scan_loop(rows, [](Span s, Span row, Span) {
          LoopOperands columns{{s[0]}, {row[0]}, {}, size_of(row[0], 0), true};
          Values inner = scan_loop(columns, [](Span s, Span x, Span) { return Values{s[0] * x[0] + x[0]}; });
          return Values{last_state(inner[0], columns), states_after(inner[0], columns)};
        });
      },
      1e-4);
}

// A size that no operand of a step shows, and a number of the host's among the operands.
TEST(ScanLoop, SizesFromOutsideAndNumbers) {
  Options options;
  options.by_value = true;
  for (bool symbolic : {false, true}) {
    options.symbolic = symbolic;
    check(
        {{DType::Float32, {5, 3}}, {DType::Float32, {}}, {DType::Float32, {7}}},
        [](const Values& v) {
          using namespace ops;  // NOLINT: the algebra on Values
          Expr width = size_of(v[2], 0);
          LoopOperands loop{{full(0, {width}, DType::Float32)}, {v[0]}, {v[1]}, size_of(v[0], 0)};
          return scan_loop(loop, [&](Span s, Span x, Span w) {
            return Values{s[0] + full(1, {width}, DType::Float32) * w[0], sum(x[0], {0}) * w[0]};
          });
        },
        options);
  }
}

}  // namespace
}  // namespace brasa::compiler
