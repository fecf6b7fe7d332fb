#include <cmath>
#include <limits>

#include "ops/rows.h"
#include "ops/series.h"

// The normal distribution and the scaled complementary error function.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kTwoOverRootPi = 1.12837916709551257390, kRootTwoPi = 2.50662827463100050242;

// erfcx(x) / y in 4y - 2 for y = 4 / (4 + x), x >= 0: Chebyshev coefficients by interpolation in 200 nodes with 40 digits.
constexpr double kErfcx[] = {
    4.56536254921463e-18,    1.4392752312917407e-16,  -6.328407998905333e-17,  -4.11734321964255e-15,
    -2.1146881864405144e-15, 1.2127675770668526e-13,  2.6158087594765937e-13,  -3.3921306850752044e-12,
    -1.7034898440947478e-11, 6.872156426289907e-11,   8.63341169495252e-10,    9.479917565245067e-10,
    -3.0291767735995364e-08, -2.1747767703449203e-07, -1.1988713758412344e-07, 9.728545951990151e-06,
    0.00010340451975756187,  0.000682254183283808,    0.003443493262717524,    0.014227107557117175,
    0.049571317930027586,    0.14758035457222363,     0.37635823567636745,     0.8160489390982629};

Value erfcx(Value x) {
  Value y = 4.0 / (4.0 + abs(x));
  Value right = y * chebyshev_sum(4.0 * y - 2.0, kErfcx);
  Value left = 2.0 * exp(where(lt(x, 0), x * x, zeros_like(x))) - right;
  return where(is_nan(x), x, where(lt(x, 0), left, right));
}

Value log_ndtr(Value x) {
  Value t = x * std::sqrt(0.5), low = lt(x, -1.0);
  Value below = where(low, t, constant_like(t, -1.0)), above = where(low, zeros_like(t), t);
  return where(low, log(erfcx(-below) / 2.0) - below * below, log1p(prim::unary("erfc", above) * -0.5));
}

// Coefficients: S. L. Moshier, Cephes Math Library 2.8 (ndtri.c): |y - 1/2| <= 3/8, and z = sqrt(-2 log y) from 2 to 8 and to 64.
constexpr double kP0[] = {-59.96335010141079, 98.00107541859997, -56.67628574690703, 13.931260938727968,
                          -1.2391658386738125};
constexpr double kQ0[] = {1.0,
                          1.9544885833814176,
                          4.676279128988815,
                          86.36024213908905,
                          -225.46268785411937,
                          200.26021238006066,
                          -82.03722561683334,
                          15.90562251262117,
                          -1.1833162112133};
constexpr double kP1[] = {4.0554489230596245,  31.525109459989388,   57.16281922464213,
                          44.08050738932008,   14.684956192885803,   2.1866330685079025,
                          -0.1402560791713545, -0.03504246268278482, -0.0008574567851546854};
constexpr double kQ1[] = {1.0,
                          15.779988325646675,
                          45.39076351288792,
                          41.3172038254672,
                          15.04253856929075,
                          2.504649462083094,
                          -0.14218292285478779,
                          -0.03808064076915783,
                          -0.0009332594808954574};
constexpr double kP2[] = {3.2377489177694603,     6.915228890689842,      3.9388102529247444,
                          1.3330346081580755,     0.20148538954917908,    0.012371663481782003,
                          0.00030158155350823543, 2.6580697468673755e-06, 6.239745391849833e-09};
constexpr double kQ2[] = {1.0,
                          6.02427039364742,
                          3.6798356385616087,
                          1.3770209948908132,
                          0.21623699359449663,
                          0.013420400608854318,
                          0.00032801446468212774,
                          2.8924786474538068e-06,
                          6.790194080099813e-09};
constexpr double kTail = 0.13533528323661269189;  // exp(-2)

Value ndtri(Value y0) {
  Value upper = gt(y0, 1 - kTail);
  Value y = where(upper, 1.0 - y0, y0);
  Value centre = gt(y, kTail);
  Value m = where(centre, y - 0.5, zeros_like(y)), mm = m * m;
  Value middle = kRootTwoPi * (m + m * (mm * polynomial(mm, kP0) / polynomial(mm, kQ0)));

  Value inside = logical_and(gt(y, 0), le(y, kTail));
  Value x = sqrt(-2.0 * log(where(inside, y, constant_like(y, 0.1)))), z = 1.0 / x;
  Value correction =
      z * where(lt(x, 8.0), polynomial(z, kP1) / polynomial(z, kQ1), polynomial(z, kP2) / polynomial(z, kQ2));
  Value tail = x - log(x) / x - correction;
  Value out = where(centre, middle, where(upper, tail, -tail));
  out = where(eq(y0, 0), constant_like(y, -kInf), where(eq(y0, 1), constant_like(y, kInf), out));
  Value outside = logical_or(logical_or(lt(y0, 0), gt(y0, 1)), is_nan(y0));
  return where(outside, constant_like(y, kNan), out);
}

}  // namespace

void add_normal_functions(Table& t) {
  t.op("aten::special_erfcx(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("exp(x²) erfc(x): a Chebyshev series in 4 / (4 + |x|), and 2 exp(x²) - erfcx(-x) for x < 0.")
      .composed_in_opmath([](Value x) { return erfcx(to_float(x)); })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{s.ct() * (2.0 * s.in(0) * s.out() - kTwoOverRootPi)}; }))
      .samples({{floats(3, 5)}, {floats(7).strided(2).in(0, 80)}, {floats(0)}, {ints(4)}});
  t.op("aten::special_log_ndtr(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("log Φ(x); for x < -1 by erfcx, so that it does not underflow.")
      .composed_in_opmath([](Value x) { return log_ndtr(to_float(x)); })
      .vjp(own_derivative([](const Saved& s) {
        Value x = s.in(0);
        return std::vector{s.ct() * (1 / kRootTwoPi) * exp(-(s.out() + 0.5 * x * x))};
      }))
      .samples({{floats(3, 5)}, {floats(7).strided(2).in(-9, 9)}, {floats(0)}, {ints(4)}});
  t.op("aten::special_ndtri(Tensor self) -> Tensor")
      .out(Out::Cast)
      .doc("The inverse of Φ; rational approximations of Cephes.")
      .composed_in_opmath([](Value x) { return ndtri(to_float(x)); })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{s.ct() * kRootTwoPi * exp(0.5 * s.out() * s.out())}; }))
      .samples({{floats(3, 5).in(0.01, 0.99)}, {floats(7).strided(2).in(0.1, 0.9)}, {floats(0)}, {ints(4)}});
}

}  // namespace brasa::ops
