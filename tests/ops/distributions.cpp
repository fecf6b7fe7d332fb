#include <cmath>
#include <functional>
#include <limits>
#include <tuple>

#include <brasa/brasa.h>
#include <brasa/call.h>
#include <gtest/gtest.h>

// Draws against what is known of their distributions: medians and means of 100,000 numbers lie within some four standard errors.
namespace brasa {
namespace {

constexpr int64_t kDraws = 100000;
constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

TEST(Distributions, CauchyHasItsQuartiles) {
  manual_seed(1);
  Tensor x = std::get<0>(empty({kDraws}).cauchy_(3, 2).sort());
  EXPECT_NEAR(x[kDraws / 2].item<double>(), 3, 0.04);
  EXPECT_NEAR(x[kDraws / 4].item<double>(), 1, 0.08);
  EXPECT_NEAR(x[3 * kDraws / 4].item<double>(), 5, 0.08);
  EXPECT_THROW(x.cauchy_(0, 0), Error);
}

TEST(Distributions, LogNormalIsNormalInItsLogarithm) {
  manual_seed(2);
  Tensor x = empty({kDraws}, kFloat64).log_normal_(0.5, 0.25).log();
  EXPECT_NEAR(x.mean().item<double>(), 0.5, 0.004);
  EXPECT_NEAR(x.std().item<double>(), 0.25, 0.004);
  EXPECT_THROW(x.log_normal_(0, -1), Error);
}

TEST(Distributions, GeometricCountsTrials) {
  manual_seed(3);
  for (DType t : {kFloat32, kInt64}) {
    Tensor x = empty({kDraws}, t).geometric_(0.25);
    EXPECT_EQ(x.min().item<double>(), 1);
    EXPECT_NEAR(x.to(kFloat64).mean().item<double>(), 4, 0.05);
    EXPECT_NEAR((x == 1).to(kFloat64).mean().item<double>(), 0.25, 0.006);
  }
  EXPECT_THROW(empty({2}).geometric_(1), Error);
}

// χ² of whole numbers against log P(k), over runs of k for which 20 or more are expected: of `cells` of them it is normal but for
// skewness, with mean cells - 1 and variance 2 (cells - 1); five deviations have a probability of about 1e-5.
void expect_distributed(const Tensor& draws, int64_t first, int64_t last, const std::function<double(double)>& log_p) {
  Tensor counts = bincount(draws.to(kInt64) - first, {}, last - first + 1).to(kFloat64);
  ASSERT_EQ(counts.numel(), last - first + 1) << "greatest " << draws.max().item<double>();
  double n = static_cast<double>(draws.numel()), chi = 0, observed = 0, expected = 0;
  int cells = 0;
  double rest = n;
  for (int64_t k = first; k <= last; ++k) {
    observed += counts[k - first].item<double>();
    expected += n * std::exp(log_p(static_cast<double>(k)));
    if (expected < 20 || (rest - expected < 20 && k < last)) continue;
    chi += (observed - expected) * (observed - expected) / expected;
    rest -= expected;
    observed = expected = 0;
    ++cells;
  }
  ASSERT_GE(cells, 2);
  EXPECT_NEAR(rest, 0, 20) << "not all probabilities were asked for";
  EXPECT_LT(chi, cells - 1 + 5 * std::sqrt(2.0 * (cells - 1))) << cells << " cells";
}

// The greatest distance from the distribution function, given at the sorted draws; over 1.95 / sqrt(n) it has the probability 0.001.
void expect_distributed(const Tensor& draws, const std::function<Tensor(const Tensor&)>& cdf) {
  Tensor f = cdf(std::get<0>(draws.to(kFloat64).flatten().sort()));
  double n = static_cast<double>(f.numel());
  Tensor distance = (f - (arange(f.numel(), kFloat64) + 0.5) / n).abs().max();
  EXPECT_LT(distance.item<double>(), 1.95 / std::sqrt(n));
}

TEST(Distributions, PoissonNumbersHaveTheirProbabilities) {
  for (double rate : {0.01, 0.7, 3.0, 9.99, 10.0, 10.6, 25.0, 400.0}) {
    SCOPED_TRACE(rate);
    manual_seed(4);
    Tensor x = poisson(full({2 * kDraws}, rate, rate == 3 ? kFloat64 : kFloat32));
    double at = rate == 3 ? rate : static_cast<double>(static_cast<float>(rate)), reach = 8 * std::sqrt(at) + 12;
    EXPECT_TRUE(equal(x, x.floor()));
    expect_distributed(x, std::max<int64_t>(0, static_cast<int64_t>(at - reach)), static_cast<int64_t>(at + reach),
                       [at](double k) { return k * std::log(at) - at - std::lgamma(k + 1); });
  }
}

TEST(Distributions, PoissonOfGreatRatesIsNormal) {
  for (double rate : {1e7, 1e15}) {
    manual_seed(5);
    Tensor z = (poisson(full({kDraws}, rate, kFloat64)) - rate) / std::sqrt(rate);
    expect_distributed(z, [](const Tensor& x) { return special_ndtr(x); });
  }
}

TEST(Distributions, PoissonAtEdges) {
  manual_seed(6);
  EXPECT_TRUE(equal(poisson(tensor({0.0, 1e-300, kInf}, kFloat64)), tensor({0.0, 0.0, kInf}, kFloat64)));
  EXPECT_THROW(poisson(tensor({1.0, -1.0})), Error);
  EXPECT_THROW(poisson(tensor({1.0, kNan})), Error);
  EXPECT_THROW(poisson(tensor({1, 2})), Error);
  EXPECT_EQ(poisson(ones({0, 3})).sizes(), (IntArrayRef{0, 3}));
  for (DType t : {kHalf, kBFloat16}) {
    Tensor x = poisson(full({1000}, 4, t));
    EXPECT_EQ(x.scalar_type(), t);
    EXPECT_NEAR(x.to(kFloat64).mean().item<double>(), 4, 0.3);  // 4.7 deviations of 2 / sqrt 1000
  }
  Tensor rate = full({3}, 2.0).requires_grad_();
  (poisson(rate) + rate).sum().backward();
  EXPECT_TRUE(equal(rate.grad(), ones({3})));
}

TEST(Distributions, BinomialNumbersHaveTheirProbabilities) {
  struct Of {
    double n, p;
  };
  for (Of of :
       {Of{1, 0.3}, {7, 0.5}, {40, 0.125}, {30, 0.875}, {20, 0.5}, {50, 0.25}, {400, 0.75}, {100000, 0.0078125}}) {
    SCOPED_TRACE(of.n);
    manual_seed(7);
    Tensor x = binomial(full({2 * kDraws}, of.n, kFloat64), full({1}, of.p, kFloat64));
    double mean = of.n * of.p, reach = 8 * std::sqrt(mean * (1 - of.p)) + 12;
    expect_distributed(x, std::max<int64_t>(0, static_cast<int64_t>(mean - reach)),
                       static_cast<int64_t>(std::min(of.n, mean + reach)), [of](double k) {
                         return std::lgamma(of.n + 1) - std::lgamma(k + 1) - std::lgamma(of.n - k + 1) +
                                k * std::log(of.p) + (of.n - k) * std::log1p(-of.p);
                       });
  }
}

TEST(Distributions, BinomialAtEdges) {
  manual_seed(8);
  auto at = [](double n, double p) { return binomial(tensor({n}, kFloat64), tensor({p}, kFloat64)).item<double>(); };
  EXPECT_EQ(at(0, 0.5), 0);
  EXPECT_EQ(at(0, kNan), 0);
  EXPECT_EQ(at(-3, 0.5), 0);
  EXPECT_EQ(at(1000, 0), 0);
  EXPECT_EQ(at(1000, -1), 0);
  EXPECT_EQ(at(1000, 1), 1000);
  EXPECT_EQ(at(5, 1.5), 5);
  EXPECT_TRUE(std::isnan(at(5, kNan)));
  EXPECT_TRUE(std::isnan(at(kNan, 0.5)));
  EXPECT_NEAR(at(1e12, 0.5), 5e11, 5 * 5e5);
  EXPECT_NEAR(at(1e18, 1e-17), 10, 20);
  Tensor x = binomial(full({2, 1}, 10.0), tensor({0.0, 0.5, 1.0}));
  EXPECT_EQ(x.sizes(), (IntArrayRef{2, 3}));
  EXPECT_TRUE(equal(x.select(1, 2), full({2}, 10.0)));
  EXPECT_THROW(binomial(ones({2}), ones({2}, kFloat64)), Error);
  EXPECT_THROW(binomial(ones({2}, kInt64), ones({2})), Error);
  EXPECT_EQ(binomial(ones({0}), ones({3, 1})).sizes(), (IntArrayRef{3, 0}));
}

TEST(Distributions, GammaNumbersHaveTheirDistribution) {
  for (double shape : {0.15, 0.4, 1.0, 2.5, 9.0, 2000.0}) {
    SCOPED_TRACE(shape);
    for (DType t : {kFloat32, kFloat64}) {
      manual_seed(9);
      Tensor a = full({kDraws}, shape, t);
      expect_distributed(_standard_gamma(a), [&](const Tensor& x) { return special_gammainc(a.to(kFloat64), x); });
    }
  }
  manual_seed(10);
  Tensor z = (_standard_gamma(full({kDraws}, 1e16, kFloat64)) - 1e16) / 1e8;
  expect_distributed(z, [](const Tensor& x) { return special_ndtr(x); });
}

TEST(Distributions, GammaAtEdges) {
  manual_seed(11);
  Tensor x = _standard_gamma(tensor({0.0, 1e-6, kInf, -0.5, kNan}));
  float least = std::numeric_limits<float>::min();
  EXPECT_EQ(x[0].item<float>(), least);
  EXPECT_EQ(x[1].item<float>(), least);
  EXPECT_EQ(x[2].item<double>(), kInf);
  EXPECT_TRUE(x.slice(0, 3).isnan().all().item<bool>());
  for (DType t : {kHalf, kBFloat16}) {
    Tensor y = _standard_gamma(full({1000}, 4, t));
    EXPECT_EQ(y.scalar_type(), t);
    EXPECT_NEAR(y.to(kFloat64).mean().item<double>(), 4, 0.3);  // 4.7 deviations of 2 / sqrt 1000
  }
  EXPECT_THROW(_standard_gamma(tensor({1, 2})), Error);
}

TEST(Distributions, DirichletNumbersHaveTheirMarginals) {
  for (DType t : {kFloat32, kFloat64}) {
    manual_seed(12);
    Tensor alpha = tensor({1.0, 0.5, 2.0}, t), x = _sample_dirichlet(alpha.expand({kDraws, 3}));
    EXPECT_TRUE(allclose(x.sum(-1), ones({kDraws}, t)));
    // A beta distribution of 1 and 2.5, whose distribution function is elementary; the sum of two is one of 1.5 and 2.
    expect_distributed(x.select(1, 0), [](const Tensor& v) { return 1 - (1 - v).pow(2.5); });
    expect_distributed(x.select(1, 0) + x.select(1, 1), [](const Tensor& v) { return v.pow(1.5) * (2.5 - 1.5 * v); });
  }
  manual_seed(13);
  // Tiny concentrations: one of three, each as often; 0.02 is five deviations of sqrt(2/9 / 10000).
  Tensor x = _sample_dirichlet(full({10000, 3}, 1e-6));
  EXPECT_EQ(x.max().item<float>(), std::nextafter(1.0f, 0.0f));
  EXPECT_EQ(x.min().item<float>(), std::numeric_limits<float>::min());
  EXPECT_TRUE(allclose((x > 0.5).to(kFloat32).mean(0), full({3}, 1.0 / 3), 0, 0.024));
  EXPECT_EQ(_sample_dirichlet(ones({3, 0})).sizes(), (IntArrayRef{3, 0}));
}

TEST(Distributions, GradientOfGammaNumbers) {
  struct Point {
    double a, x, exact, pytorch;
  };
  // -(∂P/∂a) / p with 30 digits; torch._standard_gamma_grad, which approximates, with its error as the tolerance.
  for (Point p : {Point{0.001, 1e-08, 0.000178451090003949, 0.00017845109},
                  {0.05, 0.01, 0.83115429872282, 0.8311543},
                  {0.05, 2, 15.7561217674858, 15.75605},
                  {0.3, 0.1, 0.789404403118272, 0.7894044},
                  {1, 0.5, 0.806979116825318, 0.80697849},
                  {1, 3, 1.93791169382496, 1.9378659},
                  {2.5, 0.4, 0.36971341461734, 0.36971275},
                  {2.5, 7, 1.70990298145565, 1.7099026},
                  {6, 5.9, 1.01957372543216, 1.0195929},
                  {9, 4, 0.66056163331414, 0.66067867},
                  {30, 33, 1.05425468351078, 1.0541754},
                  {500, 480, 0.980054490196162, 0.9800598},
                  {500, 560, 1.0580868977801, 1.0580874}}) {
    SCOPED_TRACE(p.a);
    double y = _standard_gamma_grad(tensor({p.a}, kFloat64), tensor({p.x}, kFloat64)).item<double>();
    EXPECT_NEAR(y / p.exact, 1, 1e-11);
    EXPECT_NEAR(y / p.pytorch, 1, 3e-4);
    float narrow = _standard_gamma_grad(tensor({p.a}), tensor({p.x})).item<float>();
    EXPECT_NEAR(narrow / p.exact, 1, 1e-5);
  }
  Tensor y = _standard_gamma_grad(tensor({2.0, -1.0, kInf, kNan, 0.0}), tensor({0.0, 1.0, 1.0, 1.0, 1.0}));
  EXPECT_EQ(y[0].item<float>(), 0);
  EXPECT_TRUE(y.slice(0, 1).isnan().all().item<bool>());
}

TEST(Distributions, GradientOfDirichletNumbers) {
  struct Point {
    double x, alpha, total, exact;  // which torch._dirichlet_grad gives to 8 digits
  };
  for (Point p : {Point{0.5, 1, 3, 0.539720770839918},
                  {0.2, 2, 4, 0.176278050642118},
                  {0.01, 0.1, 0.5, 0.616805724343416},
                  {0.9, 0.1, 0.5, 19.6905263427381},
                  {0.3, 3, 10, 0.109297125967132},
                  {0.75, 0.7, 1, 1.80325981344938},
                  {0.4, 20, 50, 0.0203026072697233},
                  {0.41, 200, 500, 0.0020278424324127},
                  {0.001, 0.05, 30, 0.0628019053412986},
                  {0.999, 9, 9.01, 0.117383225773235}}) {
    SCOPED_TRACE(p.x);
    auto at = [&](DType t) {
      return _dirichlet_grad(tensor({p.x}, t), tensor({p.alpha}, t), tensor({p.total}, t)).item<double>();
    };
    EXPECT_NEAR(at(kFloat64) / p.exact, 1, 1e-10);
    EXPECT_NEAR(at(kFloat32) / p.exact, 1, 1e-4);  // 0.999 is 3e-5 of its distance from 1 away from float32's
  }
  // At the ends: 0, and (ψ(4) - ψ(2)) / 2.
  Tensor y = _dirichlet_grad(tensor({0.0, 1.0}), full({2}, 2.0), full({2}, 4.0));
  EXPECT_TRUE(allclose(y, tensor({0.0, 5.0 / 12})));
}

// E f(x) moves with the parameters by E f'(x) dx/da: for the gamma distribution E x = a and E x² = a + a², for the Dirichlet distribution
// E x₀² = a (a + 1) / (t (t + 1)). Five standard errors.
TEST(Distributions, GradientsReachTheParameters) {
  manual_seed(14);
  for (double shape : {0.4, 3.0, 40.0}) {
    Tensor a = full({kDraws}, shape, kFloat64).requires_grad_();
    Tensor x = _standard_gamma(a);
    x.square().sum().backward();
    Tensor g = a.grad();
    EXPECT_NEAR(g.mean().item<double>(), 1 + 2 * shape, 5 * g.std().item<double>() / std::sqrt(kDraws)) << shape;
  }
  Tensor alpha = tensor({1.5, 0.5, 2.0}, kFloat64).expand({kDraws, 3}).clone().requires_grad_();
  _sample_dirichlet(alpha).select(1, 0).square().sum().backward();
  Tensor g = alpha.grad(), error = g.std(0) * (5 / std::sqrt(kDraws));
  double a = 1.5, t = 4, second = a * (a + 1) / (t * (t + 1)), by_total = -second * (1 / t + 1 / (t + 1));
  Tensor exact = tensor({by_total + (2 * a + 1) / (t * (t + 1)), by_total, by_total}, kFloat64);
  EXPECT_TRUE((g.mean(0) - exact).abs().lt(error).all().item<bool>()) << g.mean(0) << exact << error;
}

TEST(Distributions, BernoulliOfATensor) {
  manual_seed(15);
  Tensor p = tensor({0.0, 0.25, 1.0});
  Tensor x = call("aten::bernoulli.Tensor", {zeros({kDraws, 3}, kInt64), p})[0];
  EXPECT_EQ(x.scalar_type(), kInt64);
  Tensor mean = x.to(kFloat64).mean(0);
  EXPECT_EQ(mean[0].item<double>(), 0);
  EXPECT_NEAR(mean[1].item<double>(), 0.25, 0.007);
  EXPECT_EQ(mean[2].item<double>(), 1);
  EXPECT_TRUE(equal(zeros({2, 3}).bernoulli_(ones({3})), ones({2, 3})));
  EXPECT_THROW(zeros({2}).bernoulli_(tensor({0.5, kNan})), Error);
  EXPECT_THROW(zeros({3}).bernoulli_(full({2, 3}, 0.5)), Error);
}

TEST(Distributions, IntegersBelowATensor) {
  manual_seed(16);
  Tensor like = zeros({kDraws});
  Tensor x = randint_like(like, tensor(5));
  expect_distributed(x, 0, 4, [](double) { return std::log(0.2); });
  manual_seed(16);
  EXPECT_TRUE(equal(randint_like(like, 5), x));
  EXPECT_THROW(randint_like(like, tensor(0)), Error);
  EXPECT_THROW(randint_like(like, tensor({5})), Error);
}

TEST(Distributions, IntegersOfARangeBeyondInt64) {
  manual_seed(18);
  for (auto [low, high] : std::vector<std::pair<int64_t, int64_t>>{{INT64_MIN, INT64_MAX},
                                                                   {INT64_MIN, 5},
                                                                   {INT64_MIN, 0},
                                                                   {-3, INT64_MAX},
                                                                   {-(int64_t{1} << 62), int64_t{1} << 62},
                                                                   {INT64_MIN, INT64_MIN + 2}}) {
    Tensor x = randint(low, high, {kDraws}, kLong);
    EXPECT_GE(x.min().item<int64_t>(), low);
    EXPECT_LT(x.max().item<int64_t>(), high);
    // The quarters of the range have each about a quarter of the numbers.
    double width = static_cast<double>(high) - static_cast<double>(low);
    Tensor place = (x.to(kFloat64) - static_cast<double>(low)) / width;
    if (width < 4) continue;
    for (double at : {0.25, 0.5, 0.75}) EXPECT_NEAR(place.lt(at).to(kFloat64).mean().item<double>(), at, 0.02);
  }
}

TEST(Distributions, IntegersWithoutABound) {
  manual_seed(17);
  struct Of {
    DType dtype;
    double end;
  };
  for (Of of : {Of{kBool, 1},
                {kUInt8, 255},
                {kInt8, 127},
                {kInt32, 0x7fffffff},
                {kInt64, 0x1p63},
                {kHalf, 2048},
                {kFloat32, 0x1p24}}) {
    Tensor x = zeros({kDraws}, of.dtype).random_().to(kFloat64) / of.end;
    EXPECT_GE(x.min().item<double>(), 0);
    EXPECT_LE(x.max().item<double>(), 1);
    EXPECT_NEAR(x.mean().item<double>(), 0.5, 0.008) << of.dtype;  // five deviations of a coin's mean
  }
}

TEST(Distributions, GeneratorsComeBeforeOptionsToo) {
  Generator a(3), b(3);
  auto same = [](const Tensor& x, const Tensor& y) { return equal(x, y); };
  EXPECT_TRUE(same(rand({4}, a), rand({4}, {}, b)));
  EXPECT_TRUE(same(randn({4}, a, kFloat64), randn({4}, kFloat64, b)));
  EXPECT_TRUE(same(randint(3, 9, {4}, a), randint(3, 9, {4}, {}, b)));
  EXPECT_TRUE(same(randperm(9, a), randperm(9, {}, b)));
  EXPECT_TRUE(same(rand_like(ones({4}), a), rand_like(ones({4}), {}, {}, b)));
  EXPECT_TRUE(same(poisson(ones({4}), a), poisson(ones({4}), b)));
  manual_seed(18);
  Tensor x = ones({4}), drawn = rand_like(x);
  manual_seed(18);
  EXPECT_TRUE(same(call("aten::rand_like.generator", {x})[0], drawn));
}

}  // namespace
}  // namespace brasa
