#include <vector>

#include "compiler/loops/math_builder.h"
#include "compiler/loops/math_coefficients.h"

namespace brasa::compiler::math {
namespace {

constexpr double kPi = 3.1415926535897932;

// e^(-a²) with the rounding error of a² put back.
X exp_minus_square(X a) {
  int64_t half = a.is_double() ? 0x7ffffff : 0xfff;  // of the mantissa: the square of the rest is exact
  X all = bits(a), high = from_bits(all & like(all, ~half));
  X d = (high - a) * (high + a);
  return exp_of_sum(-(high * high), d);
}

// erfc(a) for a >= 0, as e^(-a²) and what that is multiplied by: a polynomial in (a - K) / (a + K), by 1 + 2a, after
// Shepherd & Laframboise 1981.
struct Erfc {
  X gauss, factor;
  explicit Erfc(X a) : gauss(exp_minus_square(a)), factor(a) {
    double K = a.is_double() ? 3.75 : 2;
    X t = (a - K) / (a + K);
    factor = polynomial(t, kErfc32, kErfc64) / (1 + 2.0 * a);
  }
};
X erfc_positive(X a) {
  Erfc e(at_most(a, a.is_double() ? 28 : 10.1));  // beyond, it is 0
  return e.gauss * e.factor;
}

// e^P(a), float32, for results from 2^-126 to 1.
X exp_of_polynomial(X a, std::span<const double> c) { return exp2_of_normal(polynomial(a, c, c, 1.4426950408889634)); }

}  // namespace

X erf(X x) {
  X a = abs(x), z = a * a;
  if (x.is_double()) {
    X small = a * polynomial(z, kErf64), large = 1 - erfc_positive(a);
    return flip_sign(select(a < 1.0, small, large), sign_bits(x));
  }
  // Beyond 0.92, 1 - e^P(a) with a polynomial for log erfc.
  a = at_most(a, 4.0);
  X small = a * polynomial(z, kErf32), large = 1 - exp_of_polynomial(a, kErfLog32);
  return flip_sign(select(a < 0.92, small, large), sign_bits(x));
}

namespace {

// erfc(a) for a >= 0 as (1 + q)^-16, where q is a polynomial, after Abramowitz & Stegun 7.1.28. What is beyond the 1 is squared by itself, which
// keeps its last bits; it is infinite long before 16.
X erfc_by_root(X a) {
  a = at_most(a, 16);
  X q = a * polynomial(a, kErfcRoot);
  for (int i = 0; i < 4; ++i) q = q * q + (q + q);
  return 1.0 / (1 + q);
}

}  // namespace

X one_plus_erf(X x) {
  X a = abs(x), all = bits(x);
  X rest = Context::current().has.gpu ? exp2_of_normal(a * polynomial(a, kErfcLog2)) : erfc_by_root(a);
  return select(all < like(all, 0), rest, 2 - rest);
}

X erfc(X x) {
  X r = erfc_positive(abs(x));
  // Between, 1 - erf(x) is as good, and exact around 0.
  r = select(x < 0.0, 2 - r, r);
  X near = 1 - x * polynomial(x * x, kErf32, kErf64);
  return select((x > -0.9) & (x < 0.5), near, r);
}

X erfinv(X y) {
  X a = abs(y), w = -log((1 - a) * (1 + a)), root = sqrt(w), r = a;
  if (y.is_double()) {
    // Segments of M. Giles, Approximating the erfinv function, 2011: nearly all numbers lie in the first.
    X tail =
        select(root < 4.0, polynomial(root - 3.25, kErfinvTail64), polynomial(at_most(root, 6.05) - 5, kErfinvFar64));
    r = a * unlikely(w > 6.25, tail, polynomial(w - 3.125, kErfinvCentre64));
  } else {
    r = a * select(w < 5.0, polynomial(w - 2.5, kErfinvCentre32), polynomial(root - 3.1, kErfinvTail32));
  }
  r = select(a == 1.0, infinity(y), r);
  return flip_sign(select(a <= 1.0, r, nan(y)), sign_bits(y));
}

namespace {

// sin(πx) for |x| of any size, by the distance to the nearest integer.
X sin_pi(X x) {
  X n = round(x), r = x - n;
  X odd = trunc(0.5 * n) != 0.5 * n;
  X s = sin(kPi * r);
  return select(odd, -s, s);
}

}  // namespace

X lgamma(X x) {
  // Left of -1/2 by reflection: Γ(x) Γ(1 - x) = π / sin πx.
  X left = x <= -0.5, near = abs(x) < 0.5, y = select(left, 1 - x, x);
  // Γ(x + 1) = x Γ(x) leads to 2 + z with z in [-1/2, 1/2], for which there is a polynomial: down from below 8, up from below 3/2, near 0
  // twice. What that multiplies or divides by, or y itself where Stirling's series holds, has a logarithm.
  X product = like(x, 1), down = y;
  for (int i = 0; i < 6; ++i) {
    X above = down > 2.5;
    down = select(above, down - 1, down);
    product = select(above, product * down, product);
  }
  X up = y < 1.5, far = y >= 8.0;
  X l = log(select(near, abs(x) * (1 + x), select(up | far, y, product)));
  X z = select(near, x, select(up, y - 1, down - 2));
  constexpr double one_minus_gamma = 0.42278433509846713;
  X at_two = z * one_minus_gamma + z * z * polynomial(z, kLgamma64);
  // Stirling's series (Abramowitz & Stegun 6.1.41).
  constexpr double stirling[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                 1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  X v = 1.0 / y;
  X series = (y - 0.5) * (l - 1) + (0.41893853320467274 + v * polynomial(v * v, stirling));
  X result = select(far, series, select(near | up, at_two - l, at_two + l));
  result = select(left, log(kPi / abs(sin_pi(x))) - result, result);
  X pole = (x <= 0.0) & (round(x) == x);
  result = select(pole | (abs(x) == infinity(x)), infinity(x), result);
  return select(is_nan(x), x, result);
}

X digamma(X x) {
  X left = x < 0.0;
  X y = select(left, 1 - x, x), r = like(x, 0);
  // ψ(x) = ψ(x + 1) - 1/x up to where the asymptotic series holds (Abramowitz & Stegun 6.3.18).
  for (int i = 0; i < 10; ++i) {
    X below = y < 10.0;
    r = select(below, r - 1.0 / y, r);
    y = select(below, y + 1, y);
  }
  constexpr double series[] = {1.0 / 12, -1.0 / 120, 1.0 / 252, -1.0 / 240, 1.0 / 132, -691.0 / 32760, 1.0 / 12};
  X v = 1.0 / (y * y);
  r = (r + log(y)) - (0.5 / y + v * polynomial(v, series));
  // ψ(1 - x) - ψ(x) = π / tan πx.
  X d = x - round(x);
  X reflected = r - kPi / tan(kPi * d);
  r = select(left, reflected, r);
  r = select(left & (d == 0.0), nan(x), r);
  r = select(x == infinity(x), x, r);
  return select(x == 0.0, flip_sign(infinity(x), sign_bits(-x)), r);
}

}  // namespace brasa::compiler::math
