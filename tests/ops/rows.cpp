#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/decompose.h"
#include "ops/primitives/interp.h"
#include "samples.h"
#include "support/str.h"

namespace brasa::test {
namespace {

using ops::Array;
using ops::Row;

std::vector<std::string> names(bool composed) {
  std::vector<std::string> out;
  for (const Row& r : ops::table().rows())
    if (r.is_primitive() != composed) out.push_back(r.name());
  return out;
}

class Rows : public testing::TestWithParam<std::string> {
 protected:
  const Row& row() const { return ops::at(GetParam()); }
};
class Primitives : public Rows {};

TEST_P(Primitives, Complete) {
  EXPECT_TRUE(row().type);
  // What a target computes whole has its meaning from its composition.
  EXPECT_NE(static_cast<bool>(row().eval), static_cast<bool>(row().compose));
  EXPECT_TRUE(row().compose || row().no_gradient || row().partial || row().transposed || row().vjp ||
              row().kind == ops::Kind::Loop)
      << "neither a derivative nor no_gradient()";
}

TEST(ScalarOps, EachHasOneRow) {
  for (int i = 1; i <= static_cast<int>(ops::ScalarOp::Philox); ++i) {
    auto op = static_cast<ops::ScalarOp>(i);
    EXPECT_EQ(ops::row_of(op).name(), str("prim::", ops::name(op)));
    EXPECT_EQ(ops::row_of(op).scalar, op);
    EXPECT_EQ(ops::scalar_op_of(ops::name(op)), op);
  }
}

TEST_P(Rows, Complete) {
  EXPECT_TRUE(row().compose);
  EXPECT_FALSE(row().eval);
  EXPECT_FALSE(row().doc.empty());
  EXPECT_FALSE(row().samples.empty());
  std::string text;
  append_to(text, row().schema);
  EXPECT_EQ(ir::parse_schema(text).params.size(), row().schema.params.size()) << text;
}

// Equal but for the order of sums, which may follow the sizes.
void expect_same(const Array& a, const Array& b) {
  ASSERT_EQ(a.dtype, b.dtype);
  ASSERT_EQ(a.shape, b.shape);
  if (a.data == b.data) return;
  ASSERT_TRUE(!is_integral(a.dtype, true)) << describe(a) << " and " << describe(b);
  double bound = a.dtype == DType::Float64 ? 1e-12 : a.dtype == DType::Float32 ? 1e-5 : 1e-2;
  for (int64_t i = 0; i < a.numel(); ++i) {
    std::complex<double> x = ops::get_complex(a, i), y = ops::get_complex(b, i);
    if (x == y || (std::isnan(x.real()) && std::isnan(y.real()))) continue;
    ASSERT_LE(std::abs(x - y), bound * (1 + std::abs(y))) << describe(a) << " and " << describe(b);
  }
}

// The same numbers whether sizes are literals or symbols, and with or without the derivative beside them.
TEST_P(Rows, SymbolicSizesGiveTheSame) {
  for (const ops::Sample& s : row().samples) {
    Call call = sample_call(row(), s, false);
    Outcome fixed = run_interpreter(call, false), symbolic = run_interpreter(call, true);
    ASSERT_EQ(fixed.outputs.size(), symbolic.outputs.size());
    for (size_t i = 0; i < fixed.outputs.size(); ++i) expect_same(fixed.outputs[i], symbolic.outputs[i]);
  }
}

double dot(const Array& a, const Array& b) {
  double s = 0;
  for (int64_t i = 0; i < a.numel(); ++i) s += ops::get(a, i) * ops::get(b, i);
  return s;
}

Array direction(const Array& like, double phase) {
  Array a = ops::make_array(like.dtype, like.shape);
  for (int64_t i = 0; i < a.numel(); ++i) ops::set(a, i, std::sin(1.7 * static_cast<double>(i) + phase));
  return a;
}

// Whether the row, or one that it is composed of, states its derivative in both directions: then it is not its composition's.
bool moves_otherwise(const Call& call) {
  Recorded r = record(call, false);
  auto stated = [](const Row& row) { return row.compose && row.jvp; };
  std::unique_ptr<ir::Graph> graph = ops::decompose(*r.graph, r.facts, stated);
  const auto& nodes = graph->nodes();
  return std::any_of(nodes.begin(), nodes.end(),
                     [&](const ir::Node* n) { return n->op != ir::input_op() && stated(ops::row_of(*n)); });
}

// The results that the composition detaches: they move with the operands and have no derivative, as in PyTorch.
std::vector<bool> detached(const Call& call) {
  Recorded r = record(call, false);
  auto detaches = [](const Row& row) { return row.name() == "aten::detach"; };
  std::unique_ptr<ir::Graph> graph = ops::decompose(*r.graph, r.facts, detaches);
  std::vector<bool> out;
  for (const ir::Output& o : graph->outputs()) {
    const ir::Node* n = o.value.node;
    out.push_back(n->op != ir::input_op() && detaches(ops::row_of(*n)));
  }
  return out;
}

// <cotangent, J v> by central differences equals <gradient, v>.
TEST_P(Rows, GradientMatchesDifferences) {
  if (row().no_gradient) GTEST_SKIP() << "has no gradient";
  int checked = 0;
  for (const ops::Sample& s : row().samples) {
    Call call = sample_call(row(), s, true);
    if (moves_otherwise(call)) continue;
    Outcome here = run_interpreter(call, false);
    bool wide = false, narrow = false;
    for (const Array& o : here.outputs) {
      wide = wide || o.dtype == DType::Float64;
      narrow = narrow || (is_floating(o.dtype) && o.dtype != DType::Float64);
    }
    bool inputs = false;
    for (bool b : call.needs_gradient) inputs = inputs || b;
    if (!inputs || !wide || narrow) continue;

    std::vector<std::optional<Array>> cotangents;
    std::vector<bool> fixed = detached(call);
    for (size_t i = 0; i < here.outputs.size(); ++i)
      cotangents.push_back(here.outputs[i].dtype == DType::Float64 && !fixed[i]
                               ? std::optional(direction(here.outputs[i], 0.3 + static_cast<double>(i)))
                               : std::nullopt);
    Call with = call;
    with.cotangents = cotangents;
    Outcome joint = run_interpreter(with, false), symbolic = run_interpreter(with, true);
    for (size_t i = 0; i < here.outputs.size(); ++i) expect_same(here.outputs[i], joint.outputs[i]);

    constexpr double kStep = 1e-6;
    Call up = call, down = call;
    double expected = 0;
    for (size_t i = 0; i < call.tensors.size(); ++i) {
      if (!call.needs_gradient[i]) continue;
      Array v = direction(call.tensors[i].array, 0.9 + 2 * static_cast<double>(i));
      for (int64_t k = 0; k < v.numel(); ++k) {
        double x = ops::get(call.tensors[i].array, k), d = kStep * ops::get(v, k);
        ops::set(up.tensors[i].array, k, x + d);
        ops::set(down.tensors[i].array, k, x - d);
      }
      if (joint.gradients[i]) expected += dot(*joint.gradients[i], v);
      ASSERT_EQ(joint.gradients[i].has_value(), symbolic.gradients[i].has_value());
      if (joint.gradients[i]) expect_same(*joint.gradients[i], *symbolic.gradients[i]);
    }
    Outcome above = run_interpreter(up, false), below = run_interpreter(down, false);
    double measured = 0, size = 1;
    for (size_t i = 0; i < cotangents.size(); ++i)
      if (cotangents[i]) {
        measured += (dot(*cotangents[i], above.outputs[i]) - dot(*cotangents[i], below.outputs[i])) / (2 * kStep);
        for (int64_t k = 0; k < here.outputs[i].numel(); ++k)
          size = std::max(size, std::fabs(ops::get(here.outputs[i], k)));
      }
    if (!std::isfinite(measured)) continue;
    // Rounding of the outputs divided by the step, and the step's square.
    EXPECT_NEAR(expected, measured, 2e-8 * size + 1e-6 * std::fabs(measured))
        << "sample " << (&s - row().samples.data());
    ++checked;
  }
  if (checked == 0) GTEST_SKIP() << "no sample with floating inputs and results";
}

INSTANTIATE_TEST_SUITE_P(Table, Primitives, testing::ValuesIn(names(false)),
                         [](const auto& i) { return test_name(i.param); });
INSTANTIATE_TEST_SUITE_P(Table, Rows, testing::ValuesIn(names(true)), [](const auto& i) { return test_name(i.param); });

}  // namespace
}  // namespace brasa::test
