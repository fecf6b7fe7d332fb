// Writing under masks, and classes as ones and zeros: what is written and how large a result is depends on values.
#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/nn.h>
#include <gtest/gtest.h>

#include <string>

#include "situations.h"
#include "support/str.h"
#include "tensor/util.h"

namespace brasa {
namespace {

using testing::contains;
using testing::error_of;

Tensor mask_of(IntArrayRef sizes, int every) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return arange(n, kLong).remainder(every).eq(0).reshape(sizes);
}

struct Write {
  std::vector<int64_t> mask;
  std::vector<int64_t> values;  // -1: as many as the mask has true elements
  int64_t before = 0;           // dimensions of self before the mask's
};
const Write kWrites[] = {{{4, 6}, {-1}}, {{4, 6}, {1}},    {{4, 6}, {}},     {{4}, {-1, 6}},
                         {{4}, {-1, 1}}, {{4}, {1, 6}},    {{4}, {6}},       {{6}, {4, -1}, 1},
                         {{6}, {-1}, 1}, {{6}, {4, 1}, 1}, {{6}, {1, -1}, 1}};

// self with values under the mask, by the mask or by the positions where it holds.
Tensor written(const Tensor& self, const Tensor& mask, int64_t before, const Tensor& values, bool accumulate,
               bool by_positions) {
  std::vector<std::optional<Tensor>> at(static_cast<size_t>(before));
  if (!by_positions) {
    at.emplace_back(mask);
  } else {
    Tensor where = mask.nonzero();
    for (int64_t d = 0; d < mask.dim(); ++d) at.emplace_back(where.select(1, d));
  }
  return self.index_put(ArrayRef<std::optional<Tensor>>(at), values, accumulate);
}

TEST(Masks, AreWrittenLikePositions) {
  for (const Write& w : kWrites)
    for (int every : {2, 3, 100})
      for (bool accumulate : {false, true}) {
        Tensor mask = mask_of(w.mask, every);
        std::vector<int64_t> sizes = w.values;
        for (int64_t& s : sizes)
          if (s < 0) s = mask.sum().item<int64_t>();
        SCOPED_TRACE(str("mask ", w.mask, ", values ", sizes, ", every ", every, accumulate ? ", added" : ""));
        auto run = [&](bool by_positions) {
          Tensor self = numbers({4, 6}).clone().requires_grad_(),
                 values = (numbers(sizes) + 3).clone().requires_grad_();
          Tensor out = written(self, mask, w.before, values, accumulate, by_positions);
          out.cos().sum().backward();
          return Tensors{out, self.grad(), values.grad()};
        };
        Tensors got = run(false), expected = run(true);
        for (size_t i = 0; i < got.size(); ++i) EXPECT_TRUE(allclose(got[i], expected[i])) << i;
      }
}

TEST(Masks, AreWrittenInCompiledFunctionsWithoutABreak) {
  auto f = [](const Tensors& in) -> Tensors {
    Tensor x = in[0] * 2;
    x.index_put_({in[1]}, in[2].sin());
    Tensor y = x.index_put({in[1]}, in[2] * 3, true);
    y.index_put_({in[1]}, 7);
    return {x, y.cos()};
  };
  CompileOptions whole;
  whole.fullgraph = true;
  auto compiled = compile(TensorFunction(f), whole);
  for (int64_t rows : {4, 7, 1, 0}) {
    Tensor mask = mask_of({rows, 6}, 3);
    auto run = [&](const TensorFunction& function) {
      Tensors in{numbers({rows, 6}).clone().requires_grad_(), mask,
                 numbers({mask.sum().item<int64_t>()}).clone().requires_grad_()};
      Tensors out = function(in);
      (out[0].sum() + out[1].sum()).backward();
      return Tensors{out[0], out[1], in[0].grad(), in[2].grad()};
    };
    Tensors eager = run(f), got = run(compiled);
    for (size_t i = 0; i < eager.size(); ++i) EXPECT_TRUE(allclose(eager[i], got[i])) << rows << " rows, " << i;
  }
  Tensors wrong{numbers({4, 6}), mask_of({4, 6}, 3), numbers({5})};
  EXPECT_TRUE(contains(error_of([&] { compiled(wrong); }), "shape mismatch"));
  EXPECT_TRUE(contains(error_of([&] { f(wrong); }), "shape mismatch"));
}

TEST(Masks, BesideIndicesAndEachOther) {
  Tensor rows = tensor({true, false, true, true}), columns = tensor({false, true, true, false, true, false});
  auto put = [&](std::vector<std::optional<Tensor>> at, const Tensor& values) {
    Tensor named = call("aten::index_put", {numbers({4, 6}), ArrayRef<std::optional<Tensor>>(at), values, true})[0];
    Tensor in_place = numbers({4, 6}).clone();
    call("aten::index_put_", {in_place, ArrayRef<std::optional<Tensor>>(at), values, true});
    EXPECT_TRUE(equal(named, in_place));
    return named;
  };
  Tensor r = tensor({0, 2, 3}), c = tensor({1, 2, 4}), v = tensor({1.0, 2.0, 3.0});
  EXPECT_TRUE(equal(put({rows, columns}, v), put({r, c}, v)));
  EXPECT_TRUE(equal(put({rows, tensor({5})}, v), put({r, tensor({5})}, v)));
  EXPECT_TRUE(equal(put({rows.to(kByte)}, ones({6})), put({r}, ones({6}))));
}

TEST(OneHot, CountsClassesItself) {
  expect_as_eager([](const Wrap& compile, Seen& seen) {
    auto f = compile([](const Tensors& in) -> Tensors {
      Tensor all = one_hot(in[0] + 1);
      return {all * 2, one_hot(in[0], 9), all.sum(-1)};
    });
    for (const Tensor& t : {tensor({0, 2, 1}), tensor({{3, 0}, {1, 7}}), tensor(4), tensor({8, 8, 8, 8})})
      seen.add(f({t}));
    for (const Tensor& t : {tensor({-2, 3}), tensor({9}), zeros({0}, kLong)}) seen.attempt([&] { seen.add(f({t})); });
  });
  EXPECT_TRUE(equal(one_hot(tensor({0, 2})), tensor({{1, 0, 0}, {0, 0, 1}})));
  EXPECT_TRUE(equal(call("aten::one_hot", {tensor({0, 2})})[0], tensor({{1, 0, 0}, {0, 0, 1}})));
  EXPECT_TRUE(equal(nn::functional::one_hot(tensor({1})), tensor({{0, 1}})));
  EXPECT_EQ(one_hot(zeros({0, 3}, kLong), 2).sizes(), (IntArrayRef{0, 3, 2}));
}

TEST(OneHot, OfGivenClassesIsNoBreakAndNoNewGraph) {
  CompileOptions whole;
  whole.fullgraph = true;
  auto known = compile([](const Tensor& t) { return one_hot(t, 5).to(kFloat) * 2; }, whole);
  EXPECT_TRUE(equal(known(tensor({4, 0})), one_hot(tensor({4, 0}), 5).to(kFloat) * 2));
  EXPECT_THROW(compile([](const Tensor& t) { return one_hot(t) * 2; }, whole)(tensor({4, 0})), Error);
  one_hot(tensor({1, 0}), 11);
  one_hot(tensor({1, 0}), 12);
  int64_t before = stats().compilations;
  for (int64_t n = 13; n < 30; ++n) EXPECT_EQ(one_hot(tensor({1, 0}), n).sum().item<int64_t>(), 2);
  EXPECT_LE(stats().compilations, before + 2);  // sizes that vectors divide have their own
}

// A symbol is not negative; an integer that is, is the negative of one.
TEST(Indices, NegativeOnesShareAGraph) {
  Tensor x = numbers({5, 7});
  for (auto f : std::vector<std::function<Tensor(int64_t)>>{
           [&](int64_t n) { return roll(x, {n}, {0}) * 2; }, [&](int64_t n) { return roll(x, {n, 2 * n}, {0, 1}) * 2; },
           [&](int64_t n) { return tril(x, n / 8) - triu(x, n / 8); },
           [&](int64_t n) { return tril_indices(6, 4, n / 8) * 2; },
           [&](int64_t n) { return arange(60).slice(0, n) * arange(60).slice(0, n); },
           [&](int64_t n) { return arange(n, 61) * 2; }}) {
    auto g = compile(f);
    for (int64_t n : {-21, -35, -26, -52, -43, -17, -59, -33, -58, -29, -47}) EXPECT_TRUE(equal(g(n), f(n))) << n;
    EXPECT_LE(g.explain().graphs.size(), 4u) << g.explain().str();
    for (int64_t n : {-1, -2, 0, 1, 8, 2, 40, 16, 31, -58}) EXPECT_TRUE(equal(g(n), f(n))) << n;
  }
}

// Nor is it very large: sums and products of symbols stay far below 2^63.
TEST(Indices, ExtremeOnesAreAsEager) {
  Tensor x = numbers({5, 7});
  for (auto f : std::vector<std::function<Tensor(int64_t)>>{
           [&](int64_t n) { return tril(x, n) * 2; }, [&](int64_t n) { return triu(x, n) * 2; },
           [&](int64_t n) { return tril_indices(6, 4, n) * 2; }, [&](int64_t n) { return triu_indices(6, 4, n) * 2; },
           [&](int64_t n) { return x.slice(0, n) * 2; }, [&](int64_t n) { return x.slice(1, 0, n) * 2; }}) {
    auto g = compile(f);
    for (int64_t n : {int64_t{2}, int64_t{3}, INT64_MAX, INT64_MIN, int64_t{-2}, int64_t{-3}, INT64_MIN, INT64_MIN + 1,
                      int64_t{1} << 50, INT64_MAX, int64_t{4}})
      EXPECT_TRUE(equal(g(n), f(n))) << n;
  }
  auto draw = compile([](int64_t low, int64_t high) { return randint(low, high, {64}, kLong); });
  for (int64_t low : {int64_t{-3}, int64_t{-4}, int64_t{-6}, INT64_MIN, INT64_MIN + 1, int64_t{-9}})
    EXPECT_LT(draw(low, 5).max().item<int64_t>(), 5) << low;
  EXPECT_TRUE(equal(tril(x, INT64_MAX), x));
  EXPECT_TRUE(equal(triu(x, INT64_MIN), x));
  EXPECT_TRUE(equal(tril(x, INT64_MIN), zeros_like(x)));
}

// Positions by a size that changes from call to call, as those of rotary embeddings and rings are.
TEST(Indices, PositionsModuloASize) {
  for (auto positions : std::vector<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& x) { return arange(x.size(0)) * 3 % x.size(0); },
           [](const Tensor& x) { return arange(x.size(0)) % (x.size(0) / 2); },
           [](const Tensor& x) { return div(arange(x.size(0)) * 2, x.size(0), "floor"); },
           [](const Tensor& x) { return (arange(x.size(0)) - x.size(0)).remainder(x.size(0)); }})
    expect_as_eager([&](const Wrap& compile, Seen& seen) {
      auto f = compile([&](const Tensors& in) -> Tensors { return {in[0].index_select(0, positions(in[0])) * 2}; });
      for (int64_t n : {16, 15, 2, 33, 9}) {
        Tensor x = arange(n * 3, kFloat).reshape({n, 3}).requires_grad_();
        Tensors out = f({x});
        (out[0] * out[0]).sum().backward();
        seen.add(out);
        seen.add({x.grad()});
      }
    });
}

}  // namespace
}  // namespace brasa
