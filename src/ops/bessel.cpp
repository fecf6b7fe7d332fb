#include <limits>

#include "ops/accepted.h"
#include "ops/rows.h"
#include "ops/series.h"

// Coefficients: S. L. Moshier, Cephes Math Library 2.8 (j0.c, j1.c). PyTorch evaluates the denominators for which Cephes has an
// implicit leading 1 without it, which costs up to 8e-7; results here agree with PyTorch's.
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Beyond 5: modulus and phase, P and Q in (5/x)².
constexpr double kPp0[] = {0.0007969367292973471,
                           0.08283523921074408,
                           1.239533716464143,
                           5.447250030587687,
                           8.74716500199817,
                           5.303240382353949,
                           1.0};
constexpr double kPq0[] = {0.0009244088105588637,
                           0.08562884743544745,
                           1.2535274390105895,
                           5.470977403304171,
                           8.761908832370695,
                           5.306052882353947,
                           1.0};
constexpr double kQp0[] = {-0.011366383889846916, -1.2825271867050931, -19.553954425773597, -93.20601521237683,
                           -177.68116798048806,   -147.07750515495118, -51.41053267665993,  -6.050143506007285};
constexpr double kQq0[] = {64.3178256118178,  856.4300259769806,  3882.4018360540163, 7240.467741956525,
                           5930.727011873169, 2062.0933166032783, 242.0057402402914};
constexpr double kPp1[] = {0.0007621256162081731,
                           0.07313970569409176,
                           1.1271960812968493,
                           5.112079511468076,
                           8.424045901417724,
                           5.214515986823615,
                           1.0};
constexpr double kPq1[] = {0.0005713231280725487,
                           0.06884559087544954,
                           1.105142326340617,
                           5.073863861286015,
                           8.399855543276042,
                           5.209828486823619,
                           1.0};
constexpr double kQp1[] = {0.05108625947501766, 4.982138729512334, 75.82382841325453,  366.7796093601508,
                           710.8563049989261,   597.4896124006136, 211.68875710057213, 25.207020585802372};
constexpr double kQq1[] = {74.23732770356752, 1056.4488603826283, 4986.410583376536, 9562.318924047562,
                           7997.041604473507, 2826.1927851763908, 336.0936078106983};
// Up to 5: J divided by its first two zeros, and what is left of Y without its logarithm, in x².
constexpr double kRp0[] = {-4794432209.782018, 1956174919465.5657, -249248344360967.72, 9708622510473064.0};
constexpr double kRq0[] = {499.563147152651,  173785.4016763747,  48440965.83399621,      11185553704.535683,
                           2112775201154.892, 310518229857422.56, 3.1812195594320496e+16, 1.7108629408104315e+18};
constexpr double kRp1[] = {-899971225.7055594, 452228297998.19403, -72749424522181.83, 3682957328638529.0};
constexpr double kRq1[] = {620.8364781180543, 256987.25675774884, 83514679.14319493,     22151159547.97925,
                           4749141220799.914, 784369607876235.9,  8.952223361846274e+16, 5.322786203326801e+18};
constexpr double kYp0[] = {15592.436785523574, -14663929.59039716,  5435264770.518765,      -982136065717.9115,
                           87590639439536.7,   -3466283033847297.0, 4.4273326857256984e+16, -1.8495080043698668e+16};
constexpr double kYq0[] = {1041.2835366425984, 626107.330137135,   268919633.39381415,    86400248710.3935,
                           20297961275010.555, 3171577528429750.5, 2.5059625617265306e+17};
constexpr double kYp1[] = {1263204747.9017804,  -647355876379.1603,    114509511541823.73,
                           -8127702555013251.0, 2.024394757135949e+17, -7.788771962659501e+17};
constexpr double kYq1[] = {594.3015923461282,  235564.09294306856, 73481194.44597217,     18760131610.870617,
                           3882312774962.3857, 620557727146953.8,  6.871410873553005e+16, 3.9727060811656064e+18};

constexpr double kQuarterPi = 0.785398163397448309616, kTwoOverPi = 0.636619772367581343076;
constexpr double kRootTwoOverPi = 0.797884560802865355880;

Value ratio(Value x, Coefficients p, Coefficients q) { return polynomial(x, p) / polynomial(x, q); }

struct Wave {
  Value p, q, angle, size;  // J = size (p cos - q sin), Y = size (p sin + q cos)
};

// For x > 5.
template <int order>
Wave wave(Value x) {
  Value w = 5.0 / x;
  Value z = order ? w * w : 25.0 / (x * x);
  Wave out;
  out.p = order ? ratio(z, kPp1, kPq1) : ratio(z, kPp0, kPq0);
  out.q = w * (order ? ratio(z, kQp1, kQq1) : ratio(z, kQp0, kQq0));
  out.angle = x - (order ? 3 : 1) * kQuarterPi;
  out.size = constant_like(x, kRootTwoOverPi) / sqrt(x);
  return out;
}

// For |x| <= 5.
template <int order>
Value near_j(Value x) {
  Value z = x * x;
  if (order == 0) return (z - 5.78318596294678452118) * (z - 30.4712623436620863991) * ratio(z, kRp0, kRq0);
  return ratio(z, kRp1, kRq1) * x * (z - 14.6819706421238932572) * (z - 49.2184563216946036703);
}

template <int order>
Value j(Value x) {
  Value size = abs(x), near = le(size, 5.0);
  Wave w = wave<order>(where(near, constant_like(x, 5.0), size));
  Value far = (w.p * cos(w.angle) - w.q * sin(w.angle)) * w.size;
  if (order == 1) far = where(lt(x, 0), -far, far);
  Value inside = where(near, x, zeros_like(x));
  Value low = near_j<order>(inside);
  if (order == 0) low = where(lt(abs(inside), 1e-5), 1.0 - inside * inside / 4.0, low);
  return where(near, low, far);
}

template <int order>
Value y(Value x) {
  Value near = le(x, 5.0);
  Value small = where(logical_and(near, gt(x, 0)), x, constant_like(x, 1.0)), z = small * small;
  Value low = order ? small * ratio(z, kYp1, kYq1) + kTwoOverPi * (near_j<1>(small) * log(small) - 1.0 / small)
                    : ratio(z, kYp0, kYq0) + kTwoOverPi * log(small) * near_j<0>(small);
  Wave w = wave<order>(where(near, constant_like(x, 5.0), x));
  Value far = (w.p * sin(w.angle) + w.q * cos(w.angle)) * w.size;
  Value out = where(near, low, far);
  out = where(eq(x, 0), constant_like(x, -kInf), out);
  return where(logical_or(lt(x, 0), is_nan(x)), constant_like(x, kNan), out);
}

// Up to here the derivatives agree with those of the approximations to all digits.
constexpr double kExact = 4.9;

template <class F>
RowBuilder add(Table& t, const char* name, const char* doc, double low, double high, F f) {
  return t.op(str("aten::", name, "(Tensor self) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath(f)
      .samples({{floats(3, 5).in(low, 4)}, {floats(7).strided(2).in(low, high)}, {floats(0)}, {ints(4).in(1, 9)}});
}

}  // namespace

void add_bessel(Table& t) {
  add(t, "special_bessel_j0", "The Bessel function J₀; rational approximations of Cephes.", -6, 12, [](Value x) {
    return j<0>(to_float(real_only("bessel_j0", x)));
  }).vjp(own_derivative([](const Saved& s) { return std::vector{-(s.ct() * j<1>(s.in(0)))}; }));
  add(t, "special_bessel_j1", "The Bessel function J₁; rational approximations of Cephes.", -6, 12, [](Value x) {
    return j<1>(to_float(x));
  }).vjp(own_derivative([](const Saved& s) {
    Value x = s.in(0), zero = eq(x, 0);
    Value d = j<0>(x) - s.out() / where(zero, constant_like(x, 1.0), x);
    return std::vector{s.ct() * where(zero, constant_like(d, 0.5), d)};
  }));
  add(t, "special_bessel_y0", "The Bessel function Y₀; rational approximations of Cephes.", 0.5, kExact, [](Value x) {
    return y<0>(to_float(x));
  }).vjp(own_derivative([](const Saved& s) { return std::vector{-(s.ct() * y<1>(s.in(0)))}; }));
  add(t, "special_bessel_y1", "The Bessel function Y₁; rational approximations of Cephes.", 0.5, kExact, [](Value x) {
    return y<1>(to_float(x));
  }).vjp(own_derivative([](const Saved& s) {
    Value x = s.in(0);
    return std::vector{s.ct() * (y<0>(x) - s.out() / x)};
  }));
  t.op("aten::special_spherical_bessel_j0(Tensor x) -> Tensor")
      .out(Out::Cast)
      .doc("sin(x) / x, by its Taylor series below 1/2; without a derivative, as in PyTorch.")
      .composed_in_opmath([](Value v) {
        Value x = to_float(real_only("spherical_bessel_j0", v)), near = lt(abs(x), 0.5);
        static constexpr double kTaylor[] = {1. / 6227020800, -1. / 39916800, 1. / 362880, -1. / 5040,
                                             1. / 120,        -1. / 6,        1.};
        Value safe = where(near, constant_like(x, 1.0), x);
        Value far = where(eq(abs(x), kInf), zeros_like(x), sin(safe) / safe);
        return where(near, polynomial(x * x, kTaylor), far);
      })
      .no_gradient()
      .samples({{floats(3, 5)}, {floats(7).strided(2).in(-12, 12)}, {floats(0)}, {ints(4)}});
}

}  // namespace brasa::ops
