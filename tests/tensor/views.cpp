#include <malloc.h>

#include <brasa/stats.h>

#include "small_stack.h"
#include "tensor/util.h"

namespace brasa {
namespace {

using namespace testing;
using test::on_small_stack;
using namespace indexing;

TEST(Views, AliasAndGeometry) {
  Tensor base = arange(24).view({2, 3, 4});
  auto geometry = [](const Tensor& t, IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
    EXPECT_EQ(t.sizes(), sizes);
    EXPECT_EQ(t.strides(), strides);
    EXPECT_EQ(t.storage_offset(), offset);
  };
  geometry(base.select(1, 2), {2, 4}, {12, 1}, 8);
  geometry(base.slice(2, 1, 4, 2), {2, 3, 2}, {12, 4, 2}, 1);
  geometry(base.narrow(2, 1, 2), {2, 3, 2}, {12, 4, 1}, 1);
  geometry(base.permute({2, 0, 1}), {4, 2, 3}, {1, 12, 4}, 0);
  geometry(arange(3).view({3, 1}).expand({-1, 4}), {3, 4}, {1, 0}, 0);
  geometry(base.as_strided({3, 3}, {4, 3}, 1), {3, 3}, {4, 3}, 1);
  geometry(base.diagonal(0, 1, 2), {2, 3}, {12, 5}, 0);
  geometry(arange(10).unfold(0, 4, 3), {3, 4}, {3, 1}, 0);
  EXPECT_TRUE(base.select(0, 1).is_alias_of(base));
  EXPECT_FALSE(base.clone().is_alias_of(base));
  EXPECT_TRUE(base[0]._base().is_same(base._base()));
}

// As in PyTorch, calls that change nothing copy nothing.
TEST(Views, CallsThatGiveTheirOperand) {
  using Dropout = Tensor (*)(const Tensor&, double, bool, std::optional<Generator>);
  Tensor x = randn({4, 6, 2}, kFloat).requires_grad_();
  for (Dropout drop : std::initializer_list<Dropout>{dropout, alpha_dropout, feature_dropout, feature_alpha_dropout}) {
    manual_seed(5);
    Tensor next = rand({3});
    manual_seed(5);
    EXPECT_TRUE(drop(x, 0.5, false, {}).is_same(x));
    EXPECT_TRUE(rand({3}).equal(next));  // no random number was used up
    EXPECT_FALSE(drop(x, 0.5, true, {}).is_alias_of(x));
    EXPECT_TRUE(contains(error_of([&] { drop(x, 1.5, false, {}); }), "between 0 and 1"));
  }
  EXPECT_TRUE(positive(x).is_alias_of(x));
  EXPECT_TRUE(conj_physical(x).is_alias_of(x));
  Tensor z = randn({3, 4}, kComplexFloat);
  EXPECT_FALSE(conj_physical(z).is_alias_of(z));
  EXPECT_TRUE(conj_physical(z.t()).equal(complex(real(z), -imag(z)).t()));
}

TEST(Views, WritesReachTheBase) {
  Tensor base = arange(24).view({2, 3, 4});
  base.select(1, 0).fill_(-1);
  base.narrow(2, 3, 1).mul_(10);
  base.slice(0, 1).slice(1, 1, 3).diagonal(0, 1, 2).add_(100);
  expect_values(base,
                {-1, -1, -1, -10, 4, 5, 6, 70, 8, 9, 10, 110, -1, -1, -1, -10, 116, 17, 18, 190, 20, 121, 22, 230});
}

TEST(Views, StridesCountFromTheBeginningOfTheMemory) {
  Tensor base = arange(12, kFloat).view({3, 4}).requires_grad_(), row = base[1];
  expect_values(row.as_strided({2}, {2}), {4, 6});
  expect_values(row.as_strided({2}, {2}, 0), {0, 2});
  expect_values(row.as_strided({2}, {2}, 5), {5, 7});
  expect_values(row.detach().as_strided({2, 2}, {4, 1}, 6), {6, 7, 10, 11});
  // What the row has gives it a gradient, what else lies in the memory gives none.
  (row.as_strided({2}, {2}, 5).sum() + row.as_strided({4}, {2}, 0).sum()).backward();
  expect_values(base.grad(), {0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0});
  Tensor cubes = zeros({2, 2, 2, 2});
  cubes[1].fill_diagonal_(1);
  expect_values(cubes, {0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1});
  EXPECT_TRUE(contains(error_of([&] { row.as_strided({2}, {2}, 11); }), "as_strided"));
}

TEST(Views, ReshapeAliasHasTheStridesThatItIsGiven) {
  Tensor row = arange(24, kFloat).view({4, 6}).slice(0, 1).requires_grad_();
  auto alias = [](const Tensor& t, IntArrayRef sizes, IntArrayRef strides) {
    return call("aten::_reshape_alias", {t, sizes, strides})[0];
  };
  Tensor y = alias(row, {2, 2}, {1, 6});
  expect_values(y.detach(), {6, 12, 7, 13});
  EXPECT_TRUE(y.is_alias_of(row));
  EXPECT_EQ(y.stride(0), 1);
  y.sum().backward();
  expect_values(row.grad(), {1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_TRUE(contains(error_of([&] { alias(row, {2, 2}, {1}); }), "2 sizes and 1 strides"));
}

// Writes through strides that count in the memory, in what the view has and outside of it, reach the gradient where they were.
TEST(Views, WritesThroughStridesOfAView) {
  auto of = [](const Tensor& x, const std::vector<int64_t>& strides, std::optional<int64_t> offset, bool turned) {
    Tensor y = x * 1, row = y[1];
    (turned ? y.t() : row).as_strided({2}, strides, offset).mul_(10);
    return y;
  };
  Tensor x = ones({3, 4}).requires_grad_();
  for (bool turned : {false, true})
    for (std::optional<int64_t> offset :
         {std::optional<int64_t>(), std::optional<int64_t>(5), std::optional<int64_t>(0)}) {
      Tensor y = of(x, {2}, offset, turned);
      EXPECT_TRUE(equal(autograd::grad({y.sum()}, {x})[0], y.detach())) << y;  // of ones, they are the factors
    }
}

// The tensor itself lies with its rows across.
TEST(Views, WritesThroughStridesOfATransposedResult) {
  Tensor x = ones({3, 4}).requires_grad_(), y = x.t() * 1;
  EXPECT_EQ(y.strides(), IntArrayRef({1, 4}));
  y.as_strided({2, 2}, {4, 1}, 1).mul_(10);
  expect_values(y, {1, 1, 1, 10, 10, 1, 10, 10, 1, 1, 1, 1});
  EXPECT_TRUE(equal(autograd::grad({y.sum()}, {x})[0], y.detach().t()));
}

TEST(Views, ViewOrCopy) {
  Tensor t = arange(6).view({2, 3}).t();
  EXPECT_TRUE(contains(error_of([&] { t.view({-1}); }), "reshape"));
  expect_values(t.reshape({-1}), {0, 3, 1, 4, 2, 5});
  EXPECT_FALSE(t.reshape({-1}).is_alias_of(t));
  EXPECT_TRUE(arange(6).reshape({2, 3}).is_alias_of(arange(6)) == false);
  Tensor a = arange(6);
  EXPECT_TRUE(a.reshape({3, 2}).is_alias_of(a));
}

// As PyTorch's: nothing is copied on the way back either.
TEST(Views, GradientsOfPartsAlias) {
  Tensor z = complex(arange(6, kFloat), ones({6})).requires_grad_(), g = arange(12, kFloat).view({6, 2});
  Tensor by_parts = autograd::grad({view_as_real(z)}, {z}, {g})[0];
  EXPECT_TRUE(by_parts.is_alias_of(g));
  expect_values(view_as_real(by_parts), {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  Tensor odd = arange(13, kFloat).narrow(0, 1, 12).view({6, 2});
  expect_values(view_as_real(autograd::grad({view_as_real(z)}, {z}, {odd})[0]),
                {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Tensor parts = arange(12, kFloat).view({6, 2}).requires_grad_(), of_numbers = complex(ones({6}), zeros({6}));
  Tensor by_numbers = autograd::grad({view_as_complex(parts)}, {parts}, {of_numbers})[0];
  EXPECT_TRUE(by_numbers.is_alias_of(of_numbers));
  expect_values(by_numbers, {1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0});
}

TEST(Views, AnotherDtype) {
  Tensor z = view_as_complex(arange(12, kFloat).view({2, 3, 2})).clone(), parts = view_as_real(z);
  EXPECT_TRUE(parts.is_alias_of(z));
  EXPECT_EQ(real(z).strides(), IntArrayRef({6, 2}));
  real(z).mul_(10);
  imag(z).select(0, 0).zero_();
  parts.select(0, 1).add_(0.5);
  expect_values(parts, {0, 0, 20, 0, 40, 0, 60.5, 7.5, 80.5, 9.5, 100.5, 11.5});
  Tensor f = arange(6, kFloat), bits = f.view(kInt);
  bits[1] = 0x40490fdb;
  EXPECT_FLOAT_EQ(f[1].item<float>(), 3.1415927F);
  EXPECT_EQ(f.view(kDouble).sizes(), IntArrayRef({3}));
  f.view(kShort).narrow(0, 2, 2).zero_();
  EXPECT_EQ(f[1].item<float>(), 0);
  EXPECT_TRUE(contains(error_of([&] { view_as_complex(f.narrow(0, 1, 4).view({2, 2})); }), "offset 1"));
  EXPECT_TRUE(contains(error_of([&] { view_as_complex(f.view({2, 3})); }), "size 2"));
  EXPECT_TRUE(contains(error_of([&] { view_as_complex(f.view({2, 3}).t()); }), "stride 1"));
  EXPECT_TRUE(contains(error_of([&] { f.view({2, 3}).t().view(kDouble); }), "view"));
}

TEST(Views, GradientsThroughParts) {
  Tensor x = arange(4, kFloat).requires_grad_(), y = x.clone();
  view_as_complex(y.view({2, 2})).mul_(std::complex<double>(0, 1));
  expect_values(y, {-1, 0, -3, 2});
  (y * arange(4, kFloat)).sum().backward();
  expect_values(x.grad(), {1, 0, 3, -2});
  Tensor z = view_as_complex(arange(4, kFloat).view({2, 2})).requires_grad_(), w = z.clone();
  real(w).mul_(3);
  view_as_real(w).square().sum().backward();
  expect_values(view_as_real(z.grad()), {0, 2, 36, 6});
}

// Of slices along one dimension and along two, by steps that have a graph each and by others, whole and empty.
TEST(Views, GradientsOfSlices) {
  for (int64_t dim : {0, 1})
    for (int64_t start : {0, 1, 4, 9})
      for (int64_t end : {9, 20})
        for (int64_t step : {1, 2, 3, 5}) {
          Tensor x = ones({9, 9}).requires_grad_(), want = zeros({9, 9});
          x.slice(dim, start, end, step).mul(3).sum().backward();
          want.slice(dim, start, end, step).fill_(3);
          EXPECT_TRUE(equal(x.grad(), want)) << dim << " " << start << ":" << end << ":" << step;
        }
  Tensor x = ones({6, 7}).requires_grad_(), want = zeros({6, 7});
  x.index({Slice(1, 5, 2), Slice(None, None, 3)}).sum().backward();
  want.index_put_({Slice(1, 5, 2), Slice(None, None, 3)}, 1);
  EXPECT_TRUE(equal(x.grad(), want));
  auto of_two = [](int64_t step) {
    Tensor x = ones({64, 64}).requires_grad_();
    x.slice(1, 3, 60, step).sum().backward();
    return stats().compilations;
  };
  of_two(2);
  int64_t before = of_two(2);
  EXPECT_EQ(of_two(2), before);
  EXPECT_GT(of_two(4), before) << "a short step has no graph of its own";
  before = of_two(7);
  EXPECT_EQ(of_two(9), before) << "long steps share one";
}

// One tensor of zeros, whose gradient reads the diagonal again.
TEST(Views, GradientsOfDiagonals) {
  Tensor x = arange(24, kFloat).view({2, 3, 4}).clone().requires_grad_();
  for (int64_t offset : {-2, -1, 0, 1, 3, 5}) {
    Tensor d = x.diagonal(offset, 2, 0), g = autograd::grad({(d * d * d).sum()}, {x}, {}, true, true)[0];
    Tensor want = zeros({2, 3, 4});
    want.diagonal(offset, 2, 0).copy_(3 * d.detach() * d.detach());
    EXPECT_TRUE(equal(g, want)) << offset;
    if (d.numel() == 0) continue;
    Tensor again = autograd::grad({g.sum()}, {x})[0];
    want.diagonal(offset, 2, 0).copy_(6 * d.detach());
    EXPECT_TRUE(equal(again, want)) << offset;
  }
}

TEST(Views, VersionsAreShared) {
  Tensor v = zeros({2});
  v.add_(1);
  v[0].mul_(2);
  EXPECT_EQ(v._version(), 2);
  EXPECT_EQ(v.detach()._version(), 2);
  v.data().add_(1);
  EXPECT_EQ(v._version(), 2);
  expect_values(v, {3, 2});
}

TEST(Views, ListsOfViews) {
  Tensor g = arange(12).view({3, 4});
  auto parts = split(g, IntArrayRef({1, 3}), 1);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[1].sizes(), IntArrayRef({3, 3}));
  parts[0].zero_();
  EXPECT_EQ(g[1][0].item<int64_t>(), 0);
  EXPECT_EQ(g.unbind(0).size(), 3u);
}

// Several views of one call share a node, whose gradient is of all that arrive: of all, some, one, and of derivatives.
TEST(Views, OfOneCallHaveOneNode) {
  Tensor x = arange(1, 13, kFloat).view({3, 4}).set_requires_grad(true);
  std::vector<Tensor> rows = x.unbind(), columns = x.split(3, 1);
  EXPECT_EQ(rows[0].grad_fn().get(), rows[2].grad_fn().get());
  EXPECT_EQ(rows[2].output_nr(), 2);
  (rows[0] * 2 + rows[1] * rows[2]).sum().backward();
  expect_values(x.grad().flatten(), {2, 2, 2, 2, 9, 10, 11, 12, 5, 6, 7, 8});
  x.mutable_grad().zero_();
  columns[1].sum().backward();
  expect_values(x.grad().flatten(), {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1});
  x.mutable_grad().zero_();
  std::vector<Tensor> parts = x.split_with_sizes({1, 1, 1});
  (parts[0] * parts[2]).sum().backward();
  expect_values(x.grad().flatten(), {9, 10, 11, 12, 0, 0, 0, 0, 1, 2, 3, 4});
  std::vector<Tensor> twice = x.chunk(2, 1);
  Tensor g = autograd::grad({(twice[0] * twice[0] * twice[1]).sum()}, {x}, {}, true, true)[0];
  expect_values(autograd::grad({g.sum()}, {x})[0].flatten(), {8, 12, 2, 4, 24, 28, 10, 12, 40, 44, 18, 20});
}

TEST(Indexing, SlicesAndIntegers) {
  Tensor m = arange(1, 21, kFloat).view({4, 5}) / 4;
  expect_values(m.index({Slice(1, 3), Slice(None, None, 2)}), {1.5, 2, 2.5, 2.75, 3.25, 3.75});
  expect_values(m.index({Ellipsis, -1}), {1.25, 2.5, 3.75, 5});
  EXPECT_EQ(m.index({Slice(), None}).sizes(), IntArrayRef({4, 1, 5}));
  EXPECT_EQ(m.index({None, Ellipsis, 0}).sizes(), IntArrayRef({1, 4}));
  EXPECT_EQ(m[-1][2].item<float>(), 4.5f);
  EXPECT_TRUE(m.index({Slice(), 1}).is_alias_of(m));
  EXPECT_THROW(m.index({0, 0, 0}), IndexError);
  EXPECT_THROW(m.index({4}), IndexError);
  EXPECT_THROW(m.select(1, 5), IndexError);
}

TEST(Indexing, TensorsAndMasks) {
  Tensor m = arange(1, 21, kFloat).view({4, 5}) / 4;
  Tensor rows = tensor({3, 0, 3});
  EXPECT_EQ(m.index({rows}).sizes(), IntArrayRef({3, 5}));
  expect_values(m.index({rows, tensor({1, 1, 4})}), {4.25, 0.5, 5});
  Tensor mask = (m > 2.0).logical_and(m < 4.0);
  expect_values(m.index({mask}), {2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75});
  expect_values(m.masked_select(mask), {2.25, 2.5, 2.75, 3, 3.25, 3.5, 3.75});
  EXPECT_EQ(m.index({tensor({true, false, false, true})}).sizes(), IntArrayRef({2, 5}));
  expect_values((m == 3.0).nonzero(), {2, 1});
  // A mask covers several dimensions; what follows it indexes the next one.
  Tensor corners = tensor({{1, 0}, {0, 1}}), last = tensor({2, 0});
  for (DType mask_dtype : {kBool, kByte})
    expect_values(arange(12).view({2, 2, 3}).index({corners.to(mask_dtype), last}), {2, 9});
  EXPECT_THROW(m.index({tensor({4})}).cpu(), IndexError);
  EXPECT_THROW(m.index({tensor({true, false})}), IndexError);
}

TEST(Indexing, Writes) {
  Tensor m = arange(1, 21, kFloat).view({4, 5}) / 4;
  Tensor mask = (m > 2.0).logical_and(m < 4.0);
  m.index_put_({Slice(0, 2), Slice(-2)}, 0.5);
  m.index_put_({2}, tensor({1.0f, 2.0f, 3.0f, 4.0f, 5.0f}));
  m.index_put_({mask}, -1);
  m.index_put_({Ellipsis, 0}, m.index({Ellipsis, 1}) * 2);
  expect_values(m, {1, 0.5, 0.75, 0.5, 0.5, 3.5, 1.75, 2, -1, -1, -2, -1, -1, -1, -1, 8.5, 4.25, 4.5, 4.75, 5});
  Tensor histogram = zeros({5}, kLong);
  histogram.index_put_({tensor({0, 4, 4, 2, 4})}, ones({5}, kLong), /*accumulate=*/true);
  expect_values(histogram, {1, 0, 1, 0, 3});
  m[0] = arange(5);
  m[3].copy_(m[0].flip(0));
  expect_values(m.sum(1), {10, 5.25, -6, 10});
}

// Each view knows its parent; a thread's stack holds a few thousand calls.
TEST(Views, KeepTheirBaseAlone) {
  Tensor base = arange(12), rows = base.view({3, 4}), part = rows.narrow(0, 1, 2), column = part.select(1, 0);
  EXPECT_EQ(rows.use_count(), 1);
  EXPECT_EQ(part.use_count(), 1);
  EXPECT_TRUE(column._base().is_same(base));
  rows = part = Tensor();
  column.add_(100);
  EXPECT_EQ(elements<int64_t>(base), (std::vector<int64_t>{0, 1, 2, 3, 104, 5, 6, 7, 108, 9, 10, 11}));
}

// A view of views gets its gradient anew after a write to its base, by all that lies between, whether those views are still there or not.
TEST(Views, GradientsAfterAWriteWithoutTheViewsBetween) {
  Tensor leaf = ones({2, 3, 4}, kDouble).requires_grad_(), base = leaf * 1;
  Tensor y = base.transpose(0, 1).narrow(2, 1, 2).transpose(1, 2).select(1, 0);
  Tensor there_and_back = base.mT().mT().mT().select(1, 1);
  base.mul_(arange(24, kDouble).view({2, 3, 4}));
  y.mul_(5);
  (y.sum() + there_and_back.sum()).backward();
  Tensor expected = zeros({2, 3, 4}, kDouble), values = arange(24, kDouble).view({2, 3, 4});
  {
    NoGradGuard guard;
    expected.select(2, 1).add_(values.select(2, 1) * 5);
    Tensor seen = values.clone();
    seen.select(2, 1).mul_(5);
    Tensor other = zeros({2, 3, 4}, kDouble);
    other.mT().select(1, 1).copy_(seen.mT().select(1, 1));
    expected.add_(other);
  }
  EXPECT_TRUE(equal(leaf.grad(), expected));
}

TEST(Views, ThereAndBackKeepsNothing) {
  on_small_stack([] {
    NoGradGuard guard;
    Tensor y = ones({2, 3}).requires_grad_();
    auto turn = [&](int times) {
      for (int i = 0; i < times; ++i) y = y.t();
    };
    turn(1000);
    wait_for_optimized_kernels();  // of other tests, which take memory of their own
    size_t before = mallinfo2().uordblks;
    turn(200000);
    EXPECT_LT(mallinfo2().uordblks, before + (size_t{64} << 10));
    y.add_(1);
    EXPECT_EQ(y.sum().item<double>(), 12);
  });
}

TEST(Views, ChainsOfAnyLengthOnASmallStack) {
  on_small_stack([] {
    constexpr int kLength = 200000;
    Tensor base = ones({2, 3}).requires_grad_(), y = base * 1;
    for (int i = 0; i < kLength; ++i) y = y.t();
    Tensor d = y.detach();
    EXPECT_EQ(d.sizes(), y.sizes());
    d = Tensor();
    {
      NoGradGuard guard;
      y._base().mul_(2);
    }
    EXPECT_EQ(y.sum().item<double>(), 12);
  });
  on_small_stack([] {
    Tensor base = ones({2, 3}, kDouble).requires_grad_(), value = base * 1, y = value;
    for (int i = 0; i < 20000; ++i) y = y.t();
    value.mul_(3);  // the histories of all views are made anew
    y.sum().backward();
    EXPECT_TRUE(equal(base.grad(), full({2, 3}, 3, kDouble)));
  });
}

// Large gradients that only look at the cotangents do so as views, and leaves keep copies. Twice, as the second time knows the places.
TEST(Gradients, OfSumsAndJoinedTensorsAreViews) {
  Tensor a = rand({300, 200}).requires_grad_(), b = rand({300, 100}).requires_grad_();
  for (int i = 0; i < 2; ++i) {
    Tensor rows = rand({300}), all = rand({300, 300}), three = tensor(3.0f);
    Tensor of_rows = autograd::grad({a.sum(1)}, {a}, {rows})[0];
    EXPECT_TRUE(of_rows.is_alias_of(rows));
    EXPECT_TRUE(equal(of_rows, rows.unsqueeze(1).expand({300, 200})));
    EXPECT_TRUE(equal(autograd::grad({a.sum()}, {a}, {three})[0], full({300, 200}, 3.0f)));
    std::vector<Tensor> parts =
        autograd::grad({cat({a, b.detach(), a.t().reshape({300, 200})}, 1)}, {a}, {rand({300, 500})});
    EXPECT_FALSE(parts[0].is_view());
    Tensor of_part = autograd::grad({cat({b, a}, 1)}, {a}, {all})[0];
    EXPECT_TRUE(of_part.is_alias_of(all));
    EXPECT_TRUE(equal(of_part, all.narrow(1, 100, 200)));
    Tensor twice = autograd::grad({(cat({b, a}, 1) + cat({a, b}, 1))}, {a}, {all})[0];
    EXPECT_TRUE(equal(twice, all.narrow(1, 100, 200) + all.narrow(1, 0, 200)));
    EXPECT_TRUE(equal(all.narrow(1, 100, 200), of_part));
  }
  Tensor ct = rand({300});
  a.sum(1).backward(ct);
  a.mutable_grad().mul_(2);
  EXPECT_TRUE(equal(a.grad(), (2 * ct).unsqueeze(1).expand({300, 200})));
}

TEST(Gradients, OfGradientsOfAnyLengthOnASmallStack) {
  on_small_stack([] {
    Tensor last;
    for (int i = 0; i < 100000; ++i) {
      Tensor next = ones({1});
      next.mutable_grad() = last;
      last = next;
    }
  });
}

}  // namespace
}  // namespace brasa
