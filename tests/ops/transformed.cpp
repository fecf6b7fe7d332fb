#include <gtest/gtest.h>

#include <cmath>

#include "ir/legality.h"
#include "ops/decompose.h"
#include "ops/interpreter.h"
#include "ops/primitives/interp.h"
#include "samples.h"
#include "support/error.h"
#include "transforms/jvp.h"
#include "transforms/vjp.h"
#include "transforms/vmap.h"

// Every row's samples through the transforms.
namespace brasa::test {
namespace {

using ops::Array;
using ops::Row;

class Transformed : public testing::TestWithParam<std::string> {
 protected:
  const Row& row() const { return ops::at(GetParam()); }
};

Array direction(DType t, const std::vector<int64_t>& shape, double phase) {
  Array a = ops::make_array(t, shape);
  for (int64_t i = 0; i < a.numel(); ++i) ops::set(a, i, std::sin(1.7 * static_cast<double>(i) + phase));
  return a;
}

double dot(const Array& a, const Array& b) {
  double s = 0;
  for (int64_t i = 0; i < a.numel(); ++i) s += ops::get(a, i) * ops::get(b, i);
  return s;
}

TEST_P(Transformed, GraphsAreLegal) {
  for (const ops::Sample& s : row().samples) {
    Call call = sample_call(row(), s, false);
    for (bool symbolic : {false, true}) {
      Recorded r = record(call, symbolic);
      ir::check_legal(*r.graph);
      ir::check_legal(*ops::decompose(*r.graph, r.facts));
    }
  }
}

// <v, J u> = <Jᵀ v, u>
TEST_P(Transformed, ForwardDerivativeIsTheTransposeOfTheBackwardOne) {
  if (row().no_gradient) GTEST_SKIP() << "has no gradient";
  for (const ops::Sample& s : row().samples) {
    Call call = sample_call(row(), s, true);
    Recorded r = record(call, false);
    std::vector<bool> marked = call.needs_gradient;
    marked.resize(r.graph->inputs().size());
    transforms::Forward forward = transforms::jvp(*r.graph, r.facts, marked);
    ir::check_legal(*forward.graph);
    std::vector<Array> inputs = r.arrays, tangents;
    for (size_t i = 0; i < marked.size(); ++i)
      if (marked[i]) {
        tangents.push_back(direction(r.arrays[i].dtype, r.arrays[i].shape, 0.9 + 2 * static_cast<double>(i)));
        inputs.push_back(tangents.back());
      }
    std::vector<Array> out = ops::evaluate(*forward.graph, inputs);

    size_t count = r.graph->outputs().size();
    std::vector<bool> has(count);
    std::vector<Array> back_inputs = r.arrays, cts(count);
    for (size_t i = 0; i < count; ++i) {
      has[i] = is_floating(out[i].dtype);
      if (!has[i]) continue;
      cts[i] = direction(out[i].dtype, out[i].shape, 0.3 + static_cast<double>(i));
      back_inputs.push_back(cts[i]);
    }
    transforms::JointGraph joint = transforms::joint(*r.graph, r.facts, marked, has);
    std::vector<Array> back = ops::evaluate(*joint.graph, back_inputs);

    double forwards = 0, backwards = 0, size = 1;
    for (size_t i = 0; i < count; ++i)
      if (has[i] && forward.tangent_of[i] >= 0) {
        ASSERT_EQ(out[forward.tangent_of[i]].shape, out[i].shape);
        forwards += dot(cts[i], out[forward.tangent_of[i]]);
      }
    for (size_t i = 0, k = 0; i < marked.size(); ++i)
      if (marked[i]) {
        if (joint.gradient_of[i] >= 0) backwards += dot(back[joint.gradient_of[i]], tangents[k]);
        ++k;
      }
    if (!std::isfinite(forwards) || !std::isfinite(backwards)) continue;
    size += std::fabs(backwards);
    // Some rows hold constants in single precision, as PyTorch does; results of a half round what goes through them.
    bool half = false;
    for (const Array& a : out) half = half || is_reduced_floating(a.dtype);
    EXPECT_NEAR(forwards, backwards, size * (half ? 2e-3 : 1e-7)) << "sample " << (&s - row().samples.data());
  }
}

// vmap over three calls with different numbers is those calls, one behind the other.
TEST_P(Transformed, ManyCallsAtOnceAreALoop) {
  constexpr int64_t kCalls = 3;
  for (const ops::Sample& s : row().samples) {
    Call call = sample_call(row(), s, false);
    std::vector<Recorded> calls;
    for (int64_t k = 0; k < kCalls; ++k) {
      calls.push_back(record(call, false));
      for (Array& a : calls.back().arrays)
        if (is_floating(a.dtype))  // a little to the side, so that ranges hold
          for (int64_t i = 0; i < a.numel(); ++i) ops::set(a, i, ops::get(a, i) * (1 - 0.01 * static_cast<double>(k)));
    }
    const Recorded& first = calls[0];
    for (int pattern = 0; pattern < 2; ++pattern) {  // all operands, or the first alone
      std::vector<bool> mapped(first.arrays.size());
      for (size_t i = 0; i < call.tensors.size(); ++i) mapped[i] = pattern == 0 || i == 0;
      std::vector<Array> stacked;
      for (size_t i = 0; i < first.arrays.size(); ++i) {
        const Array& one = first.arrays[i];
        if (!mapped[i]) {
          stacked.push_back(one);
          continue;
        }
        std::vector<int64_t> shape = one.shape;
        shape.insert(shape.begin(), kCalls);
        Array all = ops::make_array(one.dtype, shape);
        for (int64_t k = 0; k < kCalls; ++k)
          std::copy(calls[k].arrays[i].data.begin(), calls[k].arrays[i].data.end(),
                    all.data.begin() + static_cast<std::ptrdiff_t>(k * one.data.size()));
        stacked.push_back(std::move(all));
      }
      ir::Facts facts;
      std::unique_ptr<ir::Graph> whole = transforms::vmap(*first.graph, facts, mapped, ir::Expr(kCalls));
      ir::check_legal(*whole);
      std::vector<Array> got = ops::evaluate(*whole, stacked);
      for (int64_t k = 0; k < kCalls; ++k) {
        std::vector<Array> arrays = calls[k].arrays;
        for (size_t i = 0; i < arrays.size(); ++i)
          if (!mapped[i]) arrays[i] = first.arrays[i];
        std::vector<Array> want = ops::evaluate(*first.graph, arrays);
        for (size_t o = 0; o < first.graph->outputs().size(); ++o) {
          std::vector<int64_t> shape = want[o].shape;
          shape.insert(shape.begin(), kCalls);
          ASSERT_EQ(got[o].shape, shape);
          ASSERT_EQ(got[o].dtype, want[o].dtype);
          for (int64_t i = 0; i < want[o].numel(); ++i) {
            std::complex<double> a = ops::get_complex(want[o], i),
                                 b = ops::get_complex(got[o], k * want[o].numel() + i);
            if (std::isnan(a.real()) && std::isnan(b.real())) continue;
            double bound = is_integral(want[o].dtype, true) ? 0 : 1e-5 * (1 + std::abs(a));
            ASSERT_TRUE(a == b || std::abs(a - b) <= bound)
                << "call " << k << ", output " << o << ", element " << i << " is " << b << ", expected " << a;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, Transformed, testing::ValuesIn(composed_rows()),
                         [](const auto& i) { return test_name(i.param); });

// A loop has what its body has: transforms/loop.h.
TEST(Primitives, HaveABatchingRule) {
  for (const Row& r : ops::table().rows())
    if (r.is_primitive() && !r.compose && r.kind != ops::Kind::Loop && !r.batch && !r.is_pointwise() &&
        !ops::is_leaf(r.kind))
      ADD_FAILURE() << r.name();
}

TEST(Primitives, HaveAForwardDerivative) {
  for (const Row& r : ops::table().rows())
    if (r.is_primitive() && !r.compose && r.kind != ops::Kind::Loop && !r.no_gradient && !r.jvp && !r.partial &&
        !r.transposed)
      ADD_FAILURE() << r.name();
}

TEST(Primitives, SayWhatTheyDoToElements) {
  for (const Row& r : ops::table().rows()) {
    EXPECT_EQ(r.is_primitive(), r.kind != ops::Kind::None) << r.name();
    EXPECT_EQ(ops::is_view(r.kind), static_cast<bool>(r.index_rule)) << r.name();
    EXPECT_TRUE(!r.dense || ops::is_view(r.kind) || r.view_rule) << r.name();
    EXPECT_TRUE(r.is_pointwise() || (!r.commutative && r.work == 1)) << r.name();
  }
}

}  // namespace
}  // namespace brasa::test
