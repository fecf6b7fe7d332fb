#pragma once

#include <initializer_list>
#include <span>

#include "ops/algebra.h"

// Sums that special functions are made of.
namespace brasa::ops {

using Coefficients = std::span<const double>;

/// c[0] xⁿ + … + c[n], by Horner's rule.
Value polynomial(Value x, Coefficients c);
/// c[0] Tₙ(x/2) + … + c[n-1] T₁(x/2) + c[n] / 2, by Clenshaw's recurrence.
Value chebyshev_sum(Value x, Coefficients c);

}  // namespace brasa::ops
