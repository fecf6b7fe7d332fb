#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace brasa::ir {

/// Whether a number is beyond single precision, where norms take an order for infinity, as PyTorch's do for every dtype.
inline bool is_beyond_float(double n) { return std::abs(n) > std::numeric_limits<float>::max(); }

/// Whether a number is among those of Param::special.
inline bool is_special(const std::vector<double>& numbers, double n) {
  return std::any_of(numbers.begin(), numbers.end(), [&](double s) {
    return s == n || (std::isinf(s) && is_beyond_float(n) && std::signbit(s) == std::signbit(n));
  });
}

}  // namespace brasa::ir
