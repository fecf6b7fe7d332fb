#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include <brasa/brasa.h>
#include <brasa/compile.h>

#include "ops/builder.h"
#include "ops/decompose.h"
#include "ops/table.h"
#include "pack/sample_call.h"
#include "strict/bits.h"

// With BRASA_NUMBERS=strict, which is read at its first use, compiled and uncompiled programs give the same bits.
namespace brasa {
namespace {

using Tensors = std::vector<Tensor>;

const bool kStrict = ::setenv("BRASA_NUMBERS", "strict", 1) == 0;

Tensor call(const ops::Row& row, const std::vector<CallArg>& args) {
  eager::Results results;
  eager::call(eager::op(row), args, results);
  return results[0];
}

// What each row gives for its samples, and arithmetic behind it.
TEST(Strict, Rows) {
  ASSERT_TRUE(kStrict);
  NoGradGuard no_grad;
  int compared = 0;
  for (const ops::Row& row : ops::table().rows()) {
    bool fresh = row.name().find("empty") != std::string::npos;  // holds what was there
    if (row.is_primitive() || row.samples.empty() || row.random || row.count || row.number_count || fresh) continue;
    pack::SampleCall sample(row, row.samples[0].args, pack::tensor_of);
    auto body = [&](const Tensors&) {
      eager::Results results;
      eager::call(eager::op(row), sample.args(), results);
      Tensors out;
      for (size_t r = 0; r < results.size(); ++r) {
        Tensor t = results[r];
        if (!t.defined() || !t.is_floating_point()) continue;
        out.insert(out.end(), {t, t * 1.7 + 0.3, (t * t - t / 3).exp(), t.cos().mul(t).add(t.sin(), 0.7)});
      }
      return out;
    };
    Tensors want;
    try {
      want = body({});
    } catch (const Error&) {
      continue;  // singular matrices
    }
    if (want.empty()) continue;
    ++compared;
    EXPECT_EQ(difference(want, compile(body)(Tensors())), "") << row.name();
  }
  EXPECT_GT(compared, 500);
}

// A row that takes one or two tensors and needs nothing else.
struct Drawn {
  const ops::Row* row;
  size_t operands;
  Tensor operator()(const Tensor& a, const Tensor& b) const {
    std::vector<CallArg> args = {a, b};
    args.resize(operands, a);
    return call(*row, args);
  }
};

bool without_reductions(const Drawn& d) {
  ir::Graph graph;
  ir::Facts facts;
  {
    ops::Builder builder(graph, facts);
    ir::Args args;
    for (size_t i = 0; i < d.row->schema.params.size(); ++i)
      args.push_back(i < d.operands ? ir::Arg(graph.add_input({kFloat32, {2, 3}, false}))
                                    : d.row->schema.params[i].default_value.value_or(ir::Arg()));
    for (ir::Value v : builder.record(*d.row, args)) graph.add_output(v);
  }
  auto primitives = ops::decompose(graph, facts);
  return std::all_of(primitives->nodes().begin(), primitives->nodes().end(), [](const ir::Node* n) {
    if (n->op == ir::input_op()) return true;
    const ops::Row& row = ops::row_of(*n);
    return row.is_pointwise() || row.view_rule || row.kind == ops::Kind::None;
  });
}

// Point-wise rows whose result is like their operands.
std::vector<Drawn> drawable() {
  std::vector<Drawn> out;
  Tensor a = rand({2, 3}) + 0.5, b = rand({2, 3}) + 0.5;
  for (const ops::Row& row : ops::table().rows()) {
    if (row.is_primitive() || row.samples.empty() || row.random || row.count || row.number_count) continue;
    if (row.memory != ops::Memory::None || row.schema.returns.size() != 1) continue;
    Drawn d{&row, 0};
    bool suits = true;
    for (const ir::Param& p : row.schema.params) {
      bool optional = p.optional || p.default_value;
      if (!optional) ++d.operands;
      suits = suits && (optional || (p.type == ir::ParamType::Tensor && !p.list));
    }
    if (!suits || d.operands < 1 || d.operands > 2) continue;
    try {
      Tensor r = d(a, b);
      if (r.scalar_type() == kFloat32 && r.sizes() == a.sizes() && without_reductions(d)) out.push_back(d);
    } catch (const Error&) {  // not of matrices, or not of floats
    }
  }
  return out;
}

TEST(Strict, RandomPrograms) {
  NoGradGuard no_grad;
  const std::vector<Drawn> rows = drawable();
  EXPECT_GT(rows.size(), 100U);
  static constexpr int64_t kSizes[] = {0, 1, 2, 3, 7, 16, 33, 64, 129, 500};
  static constexpr DType kTypes[] = {kFloat32, kFloat32, kFloat64, kBFloat16, kHalf};
  for (uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937 pick(seed);
    auto below = [&](size_t n) { return pick() % n; };
    struct Step {
      Drawn row;
      size_t a, b;
    };
    std::vector<Step> steps(2 + below(9));
    for (size_t i = 0; i < steps.size(); ++i) steps[i] = {rows[below(rows.size())], below(3 + i), below(3 + i)};
    auto body = [&](const Tensors& in) {
      Tensors values = in;
      for (const Step& s : steps) values.push_back(s.row(values[s.a], values[s.b]));
      return Tensors{values.back(), values[values.size() - 2]};
    };
    auto compiled = compile(body);
    for (int k = 0; k < 3; ++k) {
      int64_t n = kSizes[below(std::size(kSizes))], m = kSizes[below(std::size(kSizes))];
      DType dtype = kTypes[below(std::size(kTypes))];
      auto filled = [&](IntArrayRef sizes) {
        std::uniform_real_distribution<float> spread(-3, 3);
        Tensor t = empty(sizes, kFloat32);
        for (int64_t i = 0; i < t.numel(); ++i) t.data_ptr<float>()[i] = spread(pick);
        return t.to(dtype);
      };
      Tensors in = {filled({n, m}), filled({below(2) ? n : 1, m}), filled({n, below(2) ? m : 1})};
      Tensors want;
      try {
        want = body(in);
      } catch (const Error&) {
        continue;  // not of this dtype
      }
      std::string text = str("seed ", seed, ", call ", k, ", ", name(dtype), ", ", n, " x ", m, ":");
      for (const Step& s : steps) text += str(" ", s.row.row->name(), "(", s.a, ", ", s.b, ")");
      SCOPED_TRACE(text);
      Tensors got;
      EXPECT_NO_THROW(got = compiled(in));
      EXPECT_EQ(difference(want, got), "");
    }
  }
}

// Of a function of a row of numbers, as it is and compiled, with the backward pass outside of it and inside.
void expect_same_gradients(const std::function<Tensor(const Tensor&)>& f, const std::string& what) {
  for (bool inside : {false, true}) {
    auto body = [&](const Tensor& x) {
      Tensor loss = f(x).sum();
      if (inside) loss.backward();
      return inside ? loss.detach() : loss;
    };
    auto compiled = compile(body);
    for (int salt : {0, 1, 2}) {
      Tensors want, got;
      for (Tensors* results : {&want, &got}) {
        Tensor x = ((arange(16, kFloat32) + salt) * 0.7371).sin().requires_grad_();
        Tensor loss = results == &want ? body(x) : compiled(x);
        if (!inside) loss.backward();
        *results = {loss.detach(), x.grad()};
      }
      EXPECT_EQ(difference(want, got), "") << what << ", call " << salt << (inside ? ", inside" : ", outside");
    }
  }
}

// A compiled function's first graph knows the exponent, an operator outside of it never does.
TEST(Strict, GradientsOfPowers) {
  for (double e : {1.3, 4.0, 1.5, -3.7, 0.1, 3.0, 0.5, -1.0})
    expect_same_gradients([e](const Tensor& x) { return (x.square() + 0.5).pow(e); }, str("power ", e));
}

// Rows that are no whole number of chains, and whose elements have other dimensions behind the sum.
TEST(Strict, NormsOfGroups) {
  for (std::optional<bool> dynamic : {std::optional<bool>(), std::optional(true)}) {
    Tensor weight = (arange(6, kFloat32) * 0.7).cos().requires_grad_();
    auto body = [&](const Tensor& x) { return group_norm(x, 2, weight, {}, 1e-3); };
    auto compiled = compile(body, {.dynamic = dynamic});
    for (const std::vector<int64_t>& sizes :
         std::vector<std::vector<int64_t>>{{4, 6, 6, 6}, {4, 6, 6, 5}, {2, 6, 8, 6}, {3, 6, 1, 7}, {1, 6, 2, 2}}) {
      Tensors want, got;
      for (Tensors* results : {&want, &got}) {
        int64_t n = 6 * sizes[0] * sizes[2] * sizes[3];
        Tensor x = (arange(n, kFloat32) * 0.7371).sin().reshape(sizes).requires_grad_();
        Tensor y;
        ASSERT_NO_THROW(y = results == &want ? body(x) : compiled(x)) << IntArrayRef(sizes);
        y.sin().sum().backward();
        *results = {y.detach(), x.grad(), weight.grad().clone()};
        weight.mutable_grad().reset();
      }
      EXPECT_EQ(difference(want, got), "") << IntArrayRef(sizes);
    }
  }
}

// Two sums over several dimensions, one of which a second pass over the elements needs.
TEST(Strict, SumsBesideWhatNeedsOneOfThem) {
  auto body = [](const Tensor& x) {
    Tensor part = x.narrow(0, 0, 1) * 1.5;
    return Tensors{part, part - part.amin(), part.mean()};
  };
  auto compiled = compile(body);
  for (const std::vector<int64_t>& sizes :
       std::vector<std::vector<int64_t>>{{6, 2, 5, 3}, {2, 4, 3, 5}, {3, 5, 3, 33}}) {
    int64_t n = sizes[0] * sizes[1] * sizes[2] * sizes[3];
    Tensor x = (arange(n, kFloat32) * 0.7371).sin().reshape(sizes).transpose(0, 1).contiguous().transpose(0, 1);
    Tensors got;
    ASSERT_NO_THROW(got = compiled(x)) << IntArrayRef(sizes);
    EXPECT_EQ(difference(body(x), got), "") << IntArrayRef(sizes);
  }
}

// What the view's readers send is added up before it joins what its base gets.
TEST(Strict, GradientsOfViewsBesideTheirBase) {
  auto factor = [](int i) { return (arange(16, kFloat32) * (0.3 + i)).cos(); };
  expect_same_gradients(
      [&](const Tensor& x) {
        Tensor view = x.view({4, 4});
        return (view * factor(0).view({4, 4})).sum() + (view.sin() * factor(1).view({4, 4})).sum() + x * factor(2);
      },
      "view");
  expect_same_gradients(
      [&](const Tensor& x) {
        Tensor part = x.narrow(0, 2, 6).reshape({1, 6});
        return part.mm(part.t()) * x;
      },
      "part");
}

// One row is known as such only where the product becomes a sum; nothing is left of it then, and nothing may be stored.
TEST(Strict, SlicesThatTurnOutEmpty) {
  auto body = [](const Tensor& x, const Tensor& w) { return x.sin().mm(w).slice(0, std::nullopt, -4).square().sum(); };
  auto compiled = compile(body);
  for (int64_t rows : {9, 16, 1}) {
    auto wave = [](int64_t n, double by) { return (arange(n, kFloat32) * by).sin(); };
    Tensor x = wave(rows * 8, 0.7371).view({rows, 8}), w = wave(64, 0.391).view({8, 8}).requires_grad_();
    Tensor expected = body(x, w), got = compiled(x, w);
    EXPECT_TRUE(equal(expected, got)) << rows;
    EXPECT_TRUE(equal(autograd::grad({expected}, {w})[0], autograd::grad({got}, {w})[0])) << rows;
  }
}

}  // namespace
}  // namespace brasa
