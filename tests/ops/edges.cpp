#include <cmath>
#include <limits>
#include <vector>

#include <brasa/autograd.h>
#include <brasa/brasa.h>
#include <brasa/call.h>
#include <gtest/gtest.h>

#include "ops/builder.h"

// What calls give at the edges of their arguments, with values from PyTorch.
namespace brasa::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

void expect_close(const Tensor& got, const Tensor& expected) {
  EXPECT_TRUE(allclose(got, expected, 1e-5, 1e-6, true)) << got << "\n" << expected;
}

// A NaN spoils what comes behind it alone, and a later maximum nothing; values and gradients.
TEST(Edges, RunningSumsOfExponentials) {
  struct Case {
    std::vector<double> x, y, slopes;
  };
  for (const Case& c : {
           Case{{1, kNan, 2}, {1, kNan, kNan}, {kNan, kNan, kNan}},
           Case{{0, 5, -1000, 1000, 3}, {0, 5.0067153, 5.0067153, 1000, 1000}, {1.0133857, 1.9866145, 0, 2, 0}},
           Case{{-2000, -1000, 0}, {-2000, -1000, 0}, {1, 1, 1}},
           Case{{-kInf, -kInf, 1, -kInf, 2}, {-kInf, -kInf, 1, 1, 2.3132617}, {kNan, kNan, 2.2689414, 0, 0.7310586}},
           Case{{1, kInf, 2, -kInf}, {1, kInf, kInf, kInf}, {1, kNan, 0, 0}},
           Case{{-1e30, 1e30, 0}, {-1e30, 1e30, 1e30}, {1, 2, 0}},
       })
    for (int64_t dim : {0, 1}) {
      auto n = static_cast<int64_t>(c.x.size());
      Tensor x = tensor(c.x, kFloat).reshape(dim ? std::vector<int64_t>{1, n} : std::vector<int64_t>{n, 1});
      x.requires_grad_();
      Tensor y = logcumsumexp(x, dim);
      expect_close(y.reshape({n}), tensor(c.y, kFloat));
      y.sum().backward();
      expect_close(x.grad().reshape({n}), tensor(c.slopes, kFloat));
    }
}

// The angle is that which PyTorch goes around to, not the one nearest to zero.
TEST(Edges, RunningSumsOfComplexExponentials) {
  Tensor re = tensor({0.f, 1.f, 3.f, 3.f, 200.f}), im = tensor({10.f, 4.f, -2.f, 3.f, 50.f});
  Tensor y = logcumsumexp(complex(re, im), 0);
  expect_close(real(y), tensor({0.f, 1.30536866f, 3.16018939f, 3.57627988f, 200.f}));
  expect_close(imag(y), tensor({10.f, 3.92418551f, -2.05500555f, -2.61280656f, 50.f}));
}

// Near 0 nothing of the number is lost beside a one.
TEST(Edges, SmallComplexNumbersLessOne) {
  Tensor small = tensor({1e-9}, kDouble), zero = zeros({1}, kDouble), y = expm1(complex(small, small));
  EXPECT_TRUE(allclose(real(y), small, 1e-14, 0)) << y;
  EXPECT_TRUE(allclose(imag(y), small * (1 + 1e-9), 1e-14, 0)) << y;
  EXPECT_TRUE(equal(expm1(complex(full({1}, kInf, kDouble), zero)), complex(full({1}, kInf, kDouble), zero)));
}

// As PyTorch compares them, whatever beta is.
TEST(Edges, SlopesOfSmoothLosses) {
  Tensor x = tensor({-2.f, -0.5f, 0.5f, 2.f}), one = ones({4});
  auto slopes = [&](double beta) { return smooth_l1_loss_backward(one, x, zeros({4}), 0, beta); };
  expect_close(slopes(1), tensor({-1.f, -0.5f, 0.5f, 1.f}));
  expect_close(slopes(-kInf), -one);
  expect_close(slopes(kNan), one * kNan);
}

TEST(Edges, RangesOfComplexEnds) {
  Tensor start = complex(zeros({}), ones({}));
  EXPECT_EQ(linspace(start, 1, 3).scalar_type(), kComplexFloat);
  expect_close(imag(linspace(start, 1, 3)), tensor({1.f, 0.5f, 0.f}));
  EXPECT_THROW(linspace(start, 1, 3, kFloat), Error);
  EXPECT_THROW(logspace(1, start, 3, 10, kDouble), Error);
}

TEST(Edges, ZetasOfHighOrders) {
  for (float order : {179.f, 185.f, 400.f, 1e30f, std::numeric_limits<float>::infinity()}) {
    Tensor y = special_zeta(full({4}, order), tensor({0.25f, 1.f, 2.f, 1e10f}));
    EXPECT_TRUE(equal(y, tensor({std::numeric_limits<float>::infinity(), 1.f, 0.f, 0.f}))) << order << '\n' << y;
  }
  // 40! alone is beyond float32.
  EXPECT_NEAR(polygamma(40, tensor({5.f})).item<float>() / -1.7952e19f, 1, 1e-3);
}

TEST(Edges, HuberOfAnInfiniteDelta) {
  for (double delta : {kInf, 1e300}) {
    Tensor x = tensor({0.f, 3.f, -1.f}).set_requires_grad(true);
    Tensor loss = huber_loss(x, zeros({3}), 2, delta);
    EXPECT_EQ(loss.item<float>(), 5);
    loss.backward();
    EXPECT_TRUE(equal(x.grad(), tensor({0.f, 3.f, -1.f}))) << x.grad();
  }
}

// The bounds are not rounded before they are counted.
TEST(Edges, IntegersBetweenBoundsThatAreNone) {
  auto range = [](Scalar start, Scalar end, Scalar step) { return arange(start, end, step, kLong); };
  EXPECT_TRUE(equal(range(0, 1.5, 1), tensor({0, 1}, kLong)));
  EXPECT_TRUE(equal(range(-1.5, 2.2, 1), tensor({-1, 0, 1, 2}, kLong)));
  EXPECT_TRUE(equal(range(5.9, 1.2, -1), tensor({5, 4, 3, 2, 1}, kLong)));
  EXPECT_TRUE(equal(range(0.5, 3, 0.75), zeros({4}, kLong)));
}

TEST(Edges, WhatIsTakenAsPyTorchTakesIt) {
  EXPECT_EQ(nll_loss(tensor({-1.f, -2.f, -3.f}), tensor({2}, kLong)).item<float>(), 3);
  EXPECT_THROW(nll_loss(tensor({-1.f, -2.f, -3.f}), tensor({2, 1, 0}, kLong)), Error);
  EXPECT_EQ(margin_ranking_loss(ones({2, 3}), ones({3}), ones({1}), 0.5, 0).sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(split(ones({5}), INT64_MAX).size(), 1u);
  // What is resized shares no memory with itself any more.
  Tensor out = zeros({1}).expand({7});
  add_out(out, ones({2}), ones({2}));
  EXPECT_TRUE(equal(out, full({2}, 2.f)));
  Tensor kept = zeros({1}).expand({2});
  EXPECT_THROW(add_out(kept, ones({2}), ones({2})), Error);
}

TEST(Edges, AnInfiniteLimitOfNormsHasAGradient) {
  for (double p : {1.0, 1.5, 2.0, kInf}) {
    Tensor a = tensor({1.0, 2.0, 3.0, 4.0}).reshape({2, 2}).set_requires_grad(true);
    renorm(a, p, 0, kInf).sum().backward();
    EXPECT_TRUE(equal(a.grad(), ones({2, 2}, a.scalar_type()))) << p << '\n' << a.grad();
  }
}

TEST(Edges, ACircleIsClosedByWhatIsKept) {
  Tensor x = arange(5, kDouble).reshape({1, 5});
  auto circle = [&](std::vector<int64_t> pads) { return call("aten::pad", {x, pads, "circular"}).at(0); };
  EXPECT_TRUE(equal(circle({1, -1}), tensor({3.0, 0.0, 1.0, 2.0, 3.0}, kDouble).reshape({1, 5})));
  EXPECT_TRUE(equal(circle({-1, 2}), tensor({1.0, 2.0, 3.0, 4.0, 1.0, 2.0}, kDouble).reshape({1, 6})));
  x.requires_grad_();
  circle({1, -1}).sum().backward();
  EXPECT_TRUE(equal(x.grad(), tensor({1.0, 1.0, 1.0, 2.0, 0.0}, kDouble).reshape({1, 5}))) << x.grad();
}

TEST(Edges, CountedDifferencesKeepNaN) {
  Tensor x = tensor({1.0, 2.0, 3.0, kNan}).reshape({2, 2}), d = cdist(x, x, 0.0);
  EXPECT_EQ(d[0][0].item<double>(), 0);
  EXPECT_TRUE(std::isnan(d[0][1].item<double>()));
  EXPECT_TRUE(std::isnan(pdist(x, 0.0).item<double>()));
  EXPECT_EQ(cdist(tensor({{0.25, 2.0, kInf}}), zeros({1, 3}, kDouble), 0.0).item<double>(), 3);
}

TEST(Edges, MultivariateGammaOfWhatLiesBelowItsDomain) {
  Tensor y = mvlgamma(tensor({0.5, 2.0, kNan}, kDouble), 2);
  EXPECT_EQ(y[0].item<double>(), kInf);
  EXPECT_NEAR(y[1].item<double>(), 0.45158270528945486, 1e-12);
  EXPECT_TRUE(std::isnan(y[2].item<double>()));
}

TEST(Edges, ScalesOfCodesHaveGradients) {
  Tensor codes = tensor({{1, 2}, {3, 4}}, kChar), scales = ones({2}).requires_grad_(), points = tensor({1, -1});
  call("quantized_decomposed::dequantize_per_channel", {codes, scales, points, 0, -128, 127, kChar})[0]
      .sum()
      .backward();
  EXPECT_TRUE(equal(scales.grad(), tensor({1.0f, 9.0f}))) << scales.grad();
}

TEST(Edges, OneTransformTakesItsNumberOfPoints) {
  EXPECT_THROW(fft_fft(ones({3}), -1), Error);
  EXPECT_THROW(fft_irfft(ones({3}, kComplexFloat), -1), Error);
  EXPECT_NO_THROW(fft_fftn(ones({3}), std::vector<int64_t>{-1}));
}

TEST(Edges, NothingIsLeftToPadOrToNormalize) {
  Tensor x = arange(5, kFloat).reshape({1, 5});
  for (const char* mode : {"reflect", "replicate"}) {
    auto padded = [&](std::vector<int64_t> pads) { return call("aten::pad", {x, pads, mode}).at(0); };
    EXPECT_THROW(padded({-5, 0}), Error) << mode;
    EXPECT_THROW(padded({-3, -2}), Error) << mode;
  }
  EXPECT_THROW(group_norm(zeros({2, 4, 0}), 2), Error);
  EXPECT_THROW(group_norm(zeros({2, 0, 3}), 2), Error);
  EXPECT_EQ(group_norm(zeros({0, 4, 3}), 2).sizes(), IntArrayRef({0, 4, 3}));
}

TEST(Edges, UncheckedIndicesAreCheckedAllTheSame) {
  std::vector<Tensor> beyond = {tensor({0, -5})};
  EXPECT_THROW(call("aten::_unsafe_index.Tensor", {ones({4, 2}), beyond}), Error);
  EXPECT_THROW(call("aten::_unsafe_index_put", {ones({4, 2}), beyond, ones({2, 2})}), Error);
}

TEST(Edges, IntegersAtTheirLimitsSliceAsAnyOutside) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min(), kMost = std::numeric_limits<int64_t>::max();
  Tensor x = arange(12, kFloat).reshape({2, 6});
  EXPECT_TRUE(equal(call("aten::slice_scatter", {x, zeros({2, 3}), 1, kLeast, 6, 2}).at(0),
                    call("aten::slice_scatter", {x, zeros({2, 3}), 1, 0, 6, 2}).at(0)));
  EXPECT_TRUE(equal(call("aten::slice_copy.Tensor", {x, 1, 1, 5, kMost}).at(0), x.slice(1, 1, 2)));
  EXPECT_EQ(x.diagonal(kLeast).numel() + x.diagonal(kMost).numel(), 0);
}

TEST(Edges, WhatPyTorchRefuses) {
  Tensor x = ones({2, 3});
  EXPECT_THROW(norm(x, 2, {1}, false, kHalf), Error);
  EXPECT_THROW(call("aten::gelu_backward", {x, x}, {{"approximate", "bogus"}}), Error);
  EXPECT_THROW(call("aten::_cdist_forward", {x, x, 2.0, 3}), Error);
  EXPECT_THROW(call("aten::_masked_softmax", {x, ones({2, 1}, kBool), 1}), Error);
  EXPECT_THROW(call("aten::upsample_nearest1d", {ones({1, 0, 4}), std::vector<int64_t>{8}}), Error);
  std::vector<Tensor> one = {arange(2, kFloat)};
  EXPECT_THROW(
      call("aten::gradient.tensorarray", {ones({2, 2})}, {{"spacing", one}, {"dim", std::vector<int64_t>{0, 1}}}),
      Error);
}

// The first of equal elements, also where all are what stands for nothing; NaN wins, and the first one.
TEST(Edges, PlacesOfTheGreatest) {
  for (int64_t n : {1, 2, 7, 16, 33, 100})
    for (int64_t dim : {0, 1})
      for (int64_t at : {int64_t{0}, n / 2, n - 1}) {
        auto places = [&](const Tensor& line, const char* op) {
          Tensor x = line.reshape({n, 1}).expand({n, 37});
          Tensor found = call(op, {dim ? x.t().contiguous() : x.contiguous(), dim})[0];
          EXPECT_TRUE(equal(found, full({37}, found[0].item<int64_t>(), kLong))) << op;
          return found[0].item<int64_t>();
        };
        EXPECT_EQ(places(full({n}, -kInf), "aten::argmax"), 0);
        EXPECT_EQ(places(full({n}, kInf), "aten::argmin"), 0);
        EXPECT_EQ(places(full({n}, std::numeric_limits<int64_t>::min(), kLong), "aten::argmax"), 0);
        Tensor line = full({n}, -kInf);
        line.narrow(0, at, n - at).fill_(3);
        EXPECT_EQ(places(line, "aten::argmax"), at);
        EXPECT_EQ(places(-line, "aten::argmin"), at);
        line.narrow(0, at, n - at).fill_(kNan);
        EXPECT_EQ(places(line, "aten::argmax"), at);
        EXPECT_EQ(places(line, "aten::argmin"), at);
      }
}

TEST(Edges, BoolsAmongIntegersAreIntegers) {
  const bool turned[] = {true, false};
  EXPECT_EQ(call("aten::permute", {ones({2, 3}), ArrayRef<bool>(turned, 2)}).at(0).sizes(), IntArrayRef({3, 2}));
}

TEST(Edges, CovariancesWantWeights) {
  auto weighted = [](const Tensor& x, const Tensor& w) { return call("aten::cov", {x, 1, CallArg(), w}).at(0); };
  EXPECT_THROW(weighted(ones({2, 3}), zeros({3})), Error);
  EXPECT_TRUE(std::isnan(weighted(ones({1, 1}), full({1}, 0.1)).item<double>()));
}

TEST(Edges, EmptyBatchesMoveNoStatistics) {
  for (int64_t images : {0, 2, 3}) {
    Tensor x = ones({images, 3, 4}), m = zeros({3}), v = ones({3}), none;
    call("aten::batch_norm", {x, none, none, m, v, true, 0.5, 1e-5, false});
    expect_close(m, full({3}, images ? 0.5 : 0));
    expect_close(v, full({3}, images ? 0.5 : 1));
  }
}

// A scaled operand is one of the sum's dtype from the beginning.
TEST(Edges, ScaledOperandsOfTwoDtypes) {
  Tensor x = full({}, 0.7, kDouble), i = full({2}, 3, kInt64), bytes = full({2}, 100, kByte);
  for (const Tensor& y : {add(x, i, 1.7), rsub(i, x, 1.7).neg().add(2 * x), sub(x, i, -1.7)}) {
    EXPECT_EQ(y.scalar_type(), kDouble);
    EXPECT_NEAR(y[0].item<double>(), 0.7 + 3 * 1.7, 1e-14);
  }
  EXPECT_EQ(add(i, bytes, 100)[0].item<int64_t>(), 10003);
}

TEST(Edges, GradientsOfTheNextNumber) {
  for (DType t : {kFloat, kBFloat16, kHalf}) {
    Tensor x = tensor({1.f, 2.f, 3.f}).to(t).requires_grad_(), y = tensor({1.f, 3.f, -1.f}).to(t).requires_grad_();
    nextafter(x, y).sum().backward();
    expect_close(x.grad().to(kFloat), tensor({0.f, 1.f, 1.f}));
    expect_close(y.grad().to(kFloat), zeros({3}));
  }
}

// d²/dA² of det A: of [[a, b], [c, d]] the gradient is [[d, -c], [-b, a]].
TEST(Edges, SecondDerivativesOfDeterminants) {
  for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{2, 2}, {3, 2, 2}}) {
    Tensor a = (arange(sizes.size() == 2 ? 4 : 12, kDouble) + 1.5).cos().reshape(sizes).requires_grad_();
    Tensor g = autograd::grad({linalg_det(a).sum()}, {a}, {}, true, true)[0];
    Tensor weights = arange(4, kDouble).reshape({2, 2}) + 1;
    Tensor second = autograd::grad({(g * weights).sum()}, {a})[0];
    expect_close(second, tensor({4., -3., -2., 1.}, kDouble).reshape({2, 2}).expand(sizes));
  }
}

// The slope by a factor is the product of the others, also where that factor or one of them is 0.
TEST(Edges, ScatteredProductsWithZeros) {
  struct Case {
    double x, update;
    std::vector<double> slopes_x, slopes_updates;
  };
  for (const Case& c : {Case{3, 2, {7, 1, 1}, {2, 6, 1.5}}, Case{0, 2, {7, 1, 1}, {2, 0, 0}},
                        Case{3, 0, {7, 0, 1}, {2, 0, 1.5}}, Case{0, 0, {7, 0, 1}, {2, 0, 0}}}) {
    Tensor x = tensor({2., c.x, 5.}, kFloat).requires_grad_(), updates = tensor({7., 0.5, c.update}, kFloat);
    updates.requires_grad_();
    Tensor y = x.scatter_reduce(0, tensor({0, 1, 1}), updates, "prod");
    std::vector<Tensor> slopes = autograd::grad({y.sum()}, {x, updates});
    expect_close(slopes[0], tensor(c.slopes_x, kFloat));
    expect_close(slopes[1], tensor(c.slopes_updates, kFloat));
  }
}

// Ranks are exact to float64 of the float32 that is given, as PyTorch's are: 0.1 of ten is a little more than one.
TEST(Edges, RanksOfQuantiles) {
  Tensor x = arange(11, kFloat), q = tensor({0.1f, 0.3f, 0.7f, 0.9f});
  auto quantiles = [&](const char* how) { return quantile(x, q, std::nullopt, false, how); };
  expect_close(quantiles("higher"), tensor({2.f, 4.f, 7.f, 9.f}));
  expect_close(quantiles("lower"), tensor({1.f, 3.f, 6.f, 8.f}));
  expect_close(nanquantile(x, q, std::nullopt, false, "higher"), tensor({2.f, 4.f, 7.f, 9.f}));
  Tensor many = arange(3000000, kFloat).fmod(2);  // half of them are 0: beside the middle weights are exact, too
  expect_close(quantile(many, 0.5), tensor(0.5f));
}

// Its loops are those of a copy: what is repeated once along a dimension has none for it.
TEST(Edges, RepeatedOnceIsNoDimension) {
  using ir::Expr;
  ir::Graph graph(ir::Level::Primitives);
  ir::Facts facts({3, 4, 1, 5});
  ops::Builder builder(graph, facts);
  ir::Value x = graph.add_input({kFloat, {Expr::size(0), Expr::size(1)}, false});
  ir::Value y = ops::call("aten::repeat", {x, std::vector<Expr>{Expr::size(2), Expr::size(3)}});
  EXPECT_EQ(ir::type_of(y).rank(), 2);
  EXPECT_EQ(ir::type_of(y.node->args[0].get<ir::Value>()).rank(), 3);
}

}  // namespace
}  // namespace brasa::test
