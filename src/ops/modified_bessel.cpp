#include <limits>

#include "ops/accepted.h"
#include "ops/literal.h"
#include "ops/rows.h"
#include "ops/series.h"

// Coefficients: S. L. Moshier, Cephes Math Library 2.8 (i0.c, i1.c, k0.c, k1.c).
namespace brasa::ops {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// exp(-x) I0(x) on [0, 8] in x/2 - 2, and exp(-x) sqrt(x) I0(x) on [8, inf) in 32/x - 2.
constexpr double kI0Near[] = {
    -4.4153416464793395e-18, 3.3307945188222384e-17, -2.431279846547955e-16, 1.715391285555133e-15,
    -1.1685332877993451e-14, 7.676185498604936e-14,  -4.856446783111929e-13, 2.95505266312964e-12,
    -1.726826291441556e-11,  9.675809035373237e-11,  -5.189795601635263e-10, 2.6598237246823866e-09,
    -1.300025009986248e-08,  6.046995022541919e-08,  -2.670793853940612e-07, 1.1173875391201037e-06,
    -4.4167383584587505e-06, 1.6448448070728896e-05, -5.754195010082104e-05, 0.00018850288509584165,
    -0.0005763755745385824,  0.0016394756169413357,  -0.004324309995050576,  0.010546460394594998,
    -0.02373741480589947,    0.04930528423967071,    -0.09490109704804764,   0.17162090152220877,
    -0.3046826723431984,     0.6767952744094761};
constexpr double kI0Far[] = {
    -7.233180487874754e-18,  -4.830504485944182e-18,  4.46562142029676e-17,    3.461222867697461e-17,
    -2.8276239805165836e-16, -3.425485619677219e-16,  1.7725601330565263e-15,  3.8116806693526224e-15,
    -9.554846698828307e-15,  -4.150569347287222e-14,  1.54008621752141e-14,    3.8527783827421426e-13,
    7.180124451383666e-13,   -1.7941785315068062e-12, -1.3215811840447713e-11, -3.1499165279632416e-11,
    1.1889147107846439e-11,  4.94060238822497e-10,    3.3962320257083865e-09,  2.266668990498178e-08,
    2.0489185894690638e-07,  2.8913705208347567e-06,  6.889758346916825e-05,   0.0033691164782556943,
    0.8044904110141088};
// exp(-x) I1(x) / x and exp(-x) sqrt(x) I1(x), likewise.
constexpr double kI1Near[] = {
    2.7779141127610464e-18, -2.111421214358166e-17,  1.5536319577362005e-16, -1.1055969477353862e-15,
    7.600684294735408e-15,  -5.042185504727912e-14,  3.223793365945575e-13,  -1.9839743977649436e-12,
    1.1736186298890901e-11, -6.663489723502027e-11,  3.625590281552117e-10,  -1.8872497517228294e-09,
    9.381537386495773e-09,  -4.445059128796328e-08,  2.0032947535521353e-07, -8.568720264695455e-07,
    3.4702513081376785e-06, -1.3273163656039436e-05, 4.781565107550054e-05,  -0.00016176081582589674,
    0.0005122859561685758,  -0.0015135724506312532,  0.004156422944312888,   -0.010564084894626197,
    0.024726449030626516,   -0.05294598120809499,    0.1026436586898471,     -0.17641651835783406,
    0.25258718644363365};
constexpr double kI1Far[] = {
    7.517296310842105e-18,   4.414348323071708e-18,  -4.6503053684893586e-17, -3.209525921993424e-17,
    2.96262899764595e-16,    3.3082023109209285e-16, -1.8803547755107825e-15, -3.8144030724370075e-15,
    1.0420276984128802e-14,  4.272440016711951e-14,  -2.1015418427726643e-14, -4.0835511110921974e-13,
    -7.198551776245908e-13,  2.0356285441470896e-12, 1.4125807436613782e-11,  3.2526035830154884e-11,
    -1.8974958123505413e-11, -5.589743462196584e-10, -3.835380385964237e-09,  -2.6314688468895196e-08,
    -2.512236237870209e-07,  -3.882564808877691e-06, -0.00011058893876262371, -0.009761097491361469,
    0.7785762350182801};
// K0(x) + log(x/2) I0(x) and x (K1(x) - log(x/2) I1(x)) on [0, 2] in x² - 2; exp(x) sqrt(x) K(x) on [2, inf) in 8/x - 2.
constexpr double kK0Near[] = {
    1.374465435613523e-16, 4.25981614279661e-14, 1.0349695257633842e-11, 1.904516377220209e-09, 2.5347910790261494e-07,
    2.286212103119452e-05, 0.001264615411446926, 0.0359799365153615,     0.3442898999246285,    -0.5353273932339028};
constexpr double kK0Far[] = {
    5.300433772686263e-18,  -1.6475804301524212e-17, 5.2103915050390274e-17, -1.678231096805412e-16,
    5.512055978524319e-16,  -1.848593377343779e-15,  6.3400764774050706e-15, -2.2275133269916698e-14,
    8.032890775363575e-14,  -2.9800969231727303e-13, 1.140340588208475e-12,  -4.514597883373944e-12,
    1.8559491149547177e-11, -7.957489244477107e-11,  3.577397281400301e-10,  -1.69753450938906e-09,
    8.574034017414225e-09,  -4.660489897687948e-08,  2.766813639445015e-07,  -1.8317555227191195e-06,
    1.39498137188765e-05,   -0.00012849549581627802, 0.0015698838857300533,  -0.0314481013119645,
    2.4403030820659555};
constexpr double kK1Near[] = {-7.023863479386288e-18,  -2.427449850519366e-15, -6.666901694199329e-13,
                              -1.4114883926335278e-10, -2.213387630734726e-08, -2.4334061415659684e-06,
                              -0.0001730288957513052,  -0.006975723859639864,  -0.12261118082265715,
                              -0.3531559607765449,     1.5253002273389478};
constexpr double kK1Far[] = {
    -5.756744483665017e-18,  1.7940508731475592e-17, -5.689462558442859e-17,  1.838093544366639e-16,
    -6.057047248373319e-16,  2.038703165624334e-15,  -7.019837090418314e-15,  2.4771544244813043e-14,
    -8.976705182324994e-14,  3.3484196660784293e-13, -1.2891739609510289e-12, 5.13963967348173e-12,
    -2.1299678384275683e-11, 9.218315187605006e-11,  -4.1903547593418965e-10, 2.015049755197033e-09,
    -1.0345762465678097e-08, 5.7410841254500495e-08, -3.5019606030878126e-07, 2.406484947837217e-06,
    -1.936197974166083e-05,  0.00019521551847135162, -0.002857816859622779,   0.10392373657681724,
    2.7206261904844427};

// I(x) exp(-|x|) of order 0 or 1.
template <int order>
Value scaled_i(Value x) {
  Value size = abs(x);
  Value near = le(size, 8.0);
  Value small = where(near, size, constant_like(x, 8.0)), large = where(near, constant_like(x, 8.0), size);
  Value low = chebyshev_sum(small * 0.5 - 2.0, order ? Coefficients(kI1Near) : Coefficients(kI0Near));
  Value high = chebyshev_sum(32.0 / large - 2.0, order ? Coefficients(kI1Far) : Coefficients(kI0Far)) / sqrt(large);
  if (order == 0) return where(is_nan(x), x, where(near, low, high));
  Value y = where(near, low * small, high);
  return where(is_nan(x), x, where(lt(x, 0), -y, y));
}

// NaN stays; an infinity times exp(inf) times 0 would not.
template <int order>
Value plain_i(Value x) {
  return exp(abs(x)) * scaled_i<order>(x);
}

template <int order, bool scaled>
Value k(Value x) {
  Value near = le(x, 2.0);
  Value small = where(logical_and(near, gt(x, 0)), x, constant_like(x, 1.0));
  Value large = where(near, constant_like(x, 2.0), x);
  Value low = chebyshev_sum(small * small - 2.0, order ? Coefficients(kK1Near) : Coefficients(kK0Near));
  low = order ? log(0.5 * small) * plain_i<1>(small) + low / small : low - log(0.5 * small) * plain_i<0>(small);
  Value high = chebyshev_sum(8.0 / large - 2.0, order ? Coefficients(kK1Far) : Coefficients(kK0Far)) / sqrt(large);
  Value y = scaled ? where(near, low * exp(small), high) : where(near, low, exp(-large) * high);
  y = where(eq(x, 0), constant_like(x, kInf), y);
  return where(logical_or(lt(x, 0), is_nan(x)), constant_like(x, std::numeric_limits<double>::quiet_NaN()), y);
}

Value safe_ratio(Value y, Value x) { return y / where(eq(x, 0), constant_like(x, 1.0), x); }

template <class F>
RowBuilder add_i(Table& t, const char* name, const char* doc, F f) {
  return t.op(str("aten::", name, "(Tensor self) -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath(f)
      .samples({{floats(3, 5)}, {floats(7).strided(2).in(-12, 12)}, {floats(0)}, {ints(4)}});
}

template <class F>
RowBuilder add_k(Table& t, const char* name, const char* parameter, const char* doc, F f) {
  return t.op(str("aten::", name, "(Tensor ", parameter, ") -> Tensor"))
      .out(Out::Cast)
      .doc(doc)
      .composed_in_opmath(f)
      .samples({{floats(3, 5).in(0.1, 4)}, {floats(7).strided(2).in(0.5, 12)}, {floats(0)}, {ints(4).in(1, 4)}});
}

}  // namespace

void add_modified_bessel(Table& t) {
  auto i0_derivative = own_derivative([](const Saved& s) { return std::vector{s.ct() * plain_i<1>(s.in(0))}; });
  // I1' = I0 - I1/x, which is 1/2 at 0.
  auto i1_derivative = own_derivative([](const Saved& s) {
    Value x = s.in(0);
    Value d = plain_i<0>(x) - safe_ratio(s.out(), x);
    return std::vector{s.ct() * where(eq(x, 0), constant_like(d, 0.5), d)};
  });
  add_i(t, "special_i0", "The modified Bessel function I₀; Chebyshev series of Cephes.", [](Value x) {
    return plain_i<0>(to_float(real_only("i0", x)));
  }).vjp(i0_derivative);
  add_i(t, "special_i1", "The modified Bessel function I₁; Chebyshev series of Cephes.", [](Value x) {
    return plain_i<1>(to_float(x));
  }).vjp(i1_derivative);
  add_i(t, "special_i0e", "exp(-|x|) I₀(x).", [](Value x) {
    return scaled_i<0>(to_float(real_only("i0e", x)));
  }).vjp(own_derivative([](const Saved& s) {
    Value x = s.in(0);
    return std::vector{s.ct() * (scaled_i<1>(x) - prim::unary("sign", x) * s.out())};
  }));
  add_i(t, "special_i1e", "exp(-|x|) I₁(x).", [](Value x) {
    return scaled_i<1>(to_float(x));
  }).vjp(own_derivative([](const Saved& s) {
    Value x = s.in(0), y = s.out();
    Value d = scaled_i<0>(x) - y * prim::unary("sign", x) - safe_ratio(y, x);
    return std::vector{s.ct() * where(eq(x, 0), constant_like(d, 0.5), d)};
  }));
  t.alias("aten::i0", "aten::special_i0");
  t.alias("aten::special_modified_bessel_i0", "aten::special_i0");
  t.alias("aten::special_modified_bessel_i1", "aten::special_i1");

  add_k(t, "special_modified_bessel_k0", "self", "The modified Bessel function K₀; Chebyshev series of Cephes.",
        [](Value x) { return k<0, false>(to_float(x)); })
      .vjp(own_derivative([](const Saved& s) { return std::vector{-(s.ct() * k<1, false>(s.in(0)))}; }));
  add_k(t, "special_modified_bessel_k1", "self", "The modified Bessel function K₁; Chebyshev series of Cephes.",
        [](Value x) { return k<1, false>(to_float(x)); })
      .vjp(own_derivative(
          [](const Saved& s) { return std::vector{-(s.ct() * (k<0, false>(s.in(0)) + s.out() / s.in(0)))}; }));
  add_k(t, "special_scaled_modified_bessel_k0", "x", "exp(x) K₀(x); without a derivative, as in PyTorch.", [](Value x) {
    return k<0, true>(to_float(x));
  }).no_gradient();
  add_k(t, "special_scaled_modified_bessel_k1", "x", "exp(x) K₁(x); without a derivative, as in PyTorch.", [](Value x) {
    return k<1, true>(to_float(x));
  }).no_gradient();
}

}  // namespace brasa::ops
