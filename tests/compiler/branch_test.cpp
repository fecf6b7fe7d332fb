#include <gtest/gtest.h>

#include "check.h"
#include "ops/branch.h"
#include "ops/loop.h"
#include "support/error.h"

// Branches: compiled against interpreted, on every device, with constant and with symbolic sizes.
namespace brasa::compiler {
namespace {

using namespace testing;
using ir::Value;
using Values = std::vector<Value>;
using Span = std::span<const Value>;
namespace prim = ops::prim;

// {x w, sum of x} or {x, 3}
Values branch(Value predicate, const Values& v) {
  using namespace ops;  // NOLINT: the algebra on Values
  auto yes = [](Span in) { return Values{ops::tanh(matmul2(in[0], in[1])), sum(in[0], {0, 1})}; };
  auto no = [](Span in) { return Values{in[0] * 2 + 1, full(3, {}, DType::Float32)}; };
  Values out = cond(predicate, {v[0], v[1]}, yes, no);
  out.push_back(out[0] + out[1]);
  return out;
}
Value positive(Value x) { return ops::gt(prim::reduce(x, {0, 1}, "add"), 0); }

void compare(const std::vector<In>& inputs, const Build& build) {
  Options options;
  options.tolerance = 1e-5;
  options.by_value = true;
  for (bool symbolic : {false, true}) {
    options.symbolic = symbolic;
    check(inputs, build, options);
  }
}

TEST(Branches, OfAValueThatIsComputed) {
  for (double sign : {-1.0, 1.0})
    for (int64_t n : {0, 1, 2, 7})
      compare({{DType::Float32, {n, 5}, sign, 2 * sign}, {DType::Float32, {5, 5}}},
              [](const Values& v) { return branch(positive(v[0]), v); });
}

TEST(Branches, OfAnInput) {
  for (double p : {0.0, 1.0})
    compare({{DType::Float32, {3, 5}}, {DType::Float32, {5, 5}}, {DType::Bool, {}, p, p}},
            [](const Values& v) { return branch(v[2], v); });
}

// An operand as a result, one result twice, and an input with strides.
TEST(Branches, OfOperandsThatAreHandedOn) {
  for (DType t : {DType::Bool, DType::UInt8, DType::Int32, DType::Float16, DType::Float64})
    for (double p : {0.0, 1.0})
      compare({{t, {4}, 0, 2}, {t, {4}, 0, 2, {2}}, {DType::Bool, {}, p, p}}, [](const Values& v) {
        return ops::cond(
            v[2], {v[0], v[1]}, [](Span in) { return Values{in[0], in[0], in[1]}; },
            [](Span in) { return Values{in[1], in[0], in[1]}; });
      });
}

// A check of the side that is not taken does not count.
TEST(Branches, ChecksOfOneSide) {
  for (double p : {0.0, 1.0})
    compare({{DType::Float32, {4}}, {DType::Bool, {}, p, p}}, [](const Values& v) {
      using namespace ops;  // NOLINT: the algebra on Values
      return ops::cond(
          v[1], {v[0], v[1]},
          [](Span in) {
            ops::check_values(in[1], "yes");
            return Values{in[0] + 1};
          },
          [](Span in) {
            ops::check_values(ops::logical_not(in[1]), "no");
            return Values{in[0] - 1};
          });
    });
}

TEST(Branches, InLoopsAndInBranches) {
  compare({{DType::Float32, {3}}, {DType::Float32, {6, 3}, -1, 1}}, [](const Values& v) {
    using namespace ops;  // NOLINT: the algebra on Values
    LoopOperands loop{{v[0]}, {v[1]}, {}, Expr(6)};
    return scan_loop(loop, [](Span s, Span x, Span) {
      return cond(
          gt(sum(x[0], {0}), 0), {s[0], x[0]},
          [](Span in) {
            return cond(
                gt(sum(in[0], {0}), 0), {in[0], in[1]}, [](Span i) { return Values{i[0] - i[1]}; },
                [](Span i) { return Values{i[0] + i[1]}; });
          },
          [](Span in) { return Values{in[0] * 0.5}; });
    });
  });
}

TEST(Branches, SidesThatDiffer) {
  ir::Graph g(ir::Level::Primitives);
  ir::Facts facts;
  ops::Builder builder(g, facts);
  Value p = g.add_input({DType::Bool, {}, false}), x = g.add_input({DType::Float32, {ir::Expr(3)}, false});
  auto error = [&](const ops::BodyFunction& yes, const ops::BodyFunction& no) -> std::string {
    try {
      ops::cond(p, {x}, yes, no);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  auto same = [](Span in) { return Values{in[0]}; };
  EXPECT_EQ(error(same, [](Span in) { return Values{in[0], in[0]}; }), "cond: true_fn gives 1 values, and false_fn 2");
  EXPECT_EQ(error(same, [](Span in) { return Values{ops::convert(in[0], DType::Float64)}; }),
            "cond: result 0 of true_fn is f32[3], and of false_fn f64[3]");
  EXPECT_EQ(error(same, [](Span in) { return Values{ops::sum(in[0], {0})}; }),
            "cond: result 0 of true_fn is f32[3], and of false_fn f32[]");
}

}  // namespace
}  // namespace brasa::compiler
