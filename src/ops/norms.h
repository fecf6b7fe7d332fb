#pragma once

#include <limits>

#include "ir/special.h"
#include "ops/algebra.h"

// What operators with an order p of a norm share. A graph takes p as an input, so that a new one needs no new code.
namespace brasa::ops {

/// Orders with formulas of their own, each with a graph of its own.
inline const std::vector<double> kNormOrders = {0, 1, 2, std::numeric_limits<double>::infinity(),
                                                -std::numeric_limits<double>::infinity()};

inline bool is_infinite(const Number& p) {
  return p.is_known() && !is_complex(p.dtype()) && ir::is_beyond_float(p.as_double());
}

}  // namespace brasa::ops
