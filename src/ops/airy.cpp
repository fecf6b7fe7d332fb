#include <limits>

#include "ops/rows.h"
#include "ops/series.h"

namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Coefficients: S. L. Moshier, Cephes Math Library 2.8 (airy.c), evaluated as PyTorch does (see bessel.cpp).
constexpr double kAn[] = {0.346538101525629,  12.007595273964581, 76.27960536152345,  168.08922493463058,
                          159.75639135016442, 70.53609068404442,  14.026469116338967, 1.0};
constexpr double kAd[] = {0.5675945326387702, 14.75625625848472, 84.51389701414746,  177.31808814540045,
                          164.2346928715297,  71.47784008255756, 14.095913560783403, 1.0};
constexpr double kAfn[] = {-0.1316963234183318,    -0.6264565444319123,    -0.6931580360369335,
                           -0.2797799815451191,    -0.04919001326095003,   -0.004062659235948854,
                           -0.0001592764962392621, -2.776491081552329e-06, -1.6778769848911465e-08};
constexpr double kAfd[] = {13.356042070655324,   32.682503279522464,    26.736704094149957,
                           9.187074029072596,    1.4752914677166642,    0.11568717379518804,
                           0.004402916416152112, 7.547203482874142e-05, 4.5185009297058035e-07};
constexpr double kAgn[] = {0.01973399320916857,  0.39110302961568827,   1.0657989759959559,   0.9391692298166502,
                           0.35146565610554764,  0.06338889196289255,   0.005858041130483885, 0.000282851600836737,
                           6.98793669997261e-06, 8.117892395543892e-08, 3.415517847659236e-10};
constexpr double kAgd[] = {9.30892908077442,       19.835292871831214,  15.564662893286462,   5.476860694229755,
                           0.9542936116189619,     0.08645808263523921, 0.004126565238242226, 0.00010125908511650914,
                           1.1716673321441352e-06, 4.9183457006293e-09};
constexpr double kRootOfOneOverPi = 0.564189583547756286948;

// Both solutions' Maclaurin series in x³ (Abramowitz & Stegun 10.4.3); 13 terms leave less than 1e-17 for |x| < 2.1.
Value near_zero(Value x) {
  constexpr int kTerms = 13;
  double f[kTerms], g[kTerms];
  double a = 1, b = 1;
  for (int k = 0; k < kTerms; ++k) {
    f[kTerms - 1 - k] = a;
    g[kTerms - 1 - k] = b;
    a /= (3 * k + 2) * (3 * k + 3);
    b /= (3 * k + 3) * (3 * k + 4);
  }
  Value z = x * x * x;
  return 0.355028053887817239260 * polynomial(z, f) - 0.258819403792806798405 * (x * polynomial(z, g));
}

Value airy(Value x) {
  Value right = ge(x, 2.09), left = lt(x, -2.09);
  Value middle = near_zero(where(logical_or(right, left), zeros_like(x), x));

  Value p = where(logical_and(right, le(x, 103.892)), x, constant_like(x, 3.0));
  Value zeta = 2.0 * p * sqrt(p) / 3.0, w = 1.0 / zeta;
  Value decay = kRootOfOneOverPi * (polynomial(w, kAn) / polynomial(w, kAd)) / (2.0 * sqrt(sqrt(p)) * exp(zeta));
  decay = where(gt(x, 103.892), zeros_like(x), decay);

  Value q = where(logical_and(left, gt(x, -kInf)), -x, constant_like(x, 3.0));
  Value angle = 2.0 * q * sqrt(q) / 3.0, z = 1.0 / angle, zz = z * z;
  Value t = angle + 0.785398163397448309616;
  Value wave = kRootOfOneOverPi / sqrt(sqrt(q)) *
               (sin(t) * (1.0 + zz * polynomial(zz, kAfn) / polynomial(zz, kAfd)) -
                cos(t) * (z * polynomial(zz, kAgn) / polynomial(zz, kAgd)));

  Value y = where(right, decay, where(left, wave, middle));
  return where(logical_or(eq(abs(x), kInf), is_nan(x)), constant_like(x, kNan), y);
}

}  // namespace

void add_airy(Table& t) {
  t.op("aten::special_airy_ai(Tensor x) -> Tensor")
      .out(Out::Cast)
      .doc(
          "The Airy function Ai, by its series between -2.09 and 2.09 and rational approximations of Cephes outside; NaN at both "
          "infinities and without a derivative, as in PyTorch.")
      .composed_in_opmath([](Value x) { return airy(to_float(x)); })
      .no_gradient()
      .samples({{floats(3, 5)}, {floats(9).strided(2).in(-9, 9)}, {floats(0)}, {ints(4)}});
}

}  // namespace brasa::ops
