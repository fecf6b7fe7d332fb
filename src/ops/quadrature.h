#pragma once

#include "ops/algebra.h"

namespace brasa::ops {

/// The points and weights of a rule for integrals over v > 0, float64 of shape [n, 1, …] with `rank` ones.
struct Quadrature {
  Value points, weights;
};
/// v = exp(π/2 sinh t) makes the trapezoidal rule converge exponentially (Takahasi & Mori 1974), whatever the scale of the
/// integrand is within many orders of magnitude.
Quadrature double_exponential(int64_t rank);

/// ∫ f(v) dv over v > 0 for each element of `scale`, about which v lies where f has fallen from f(0). `f` maps a float64 value
/// of points, which are along a new first dimension.
template <class F>
Value integral(Value scale, F f) {
  auto [points, weights] = double_exponential(rank_of(scale));
  return sum(weights * f(points * scale), {0}) * scale;
}

}  // namespace brasa::ops
