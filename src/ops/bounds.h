#pragma once

#include <cstdint>
#include <vector>

#include "ops/shapes.h"
#include "support/error.h"

// Bounds of slices, which may be any numbers.
namespace brasa::ops {

/// Steps that have a graph each, in which no place is divided by a number that the code does not know.
inline std::vector<double> short_steps() { return {1, 2, 3, 4}; }

/// An index counted from the start; clamped to [0, size] as a slice's bounds are.
inline Expr clamped_bound(Expr i, Expr size) {
  if (i.is_constant() && i.constant() >= INT64_MAX / 2) return size;
  if (i.is_constant() && i.constant() <= INT64_MIN / 2) return 0;
  if (is_less(i, 0)) return ir::max(i + size, 0);
  return ir::min(i, size);
}

/// A step that is positive. One beyond the size takes one element, as the size does, which places can be multiplied by.
inline Expr checked_step(Expr step, Expr size) {
  BRASA_CHECK(is_less(0, step), "slice step must be positive, got ", step);
  bool large = step.is_constant() && step.constant() > INT32_MAX;
  return large && is_less(size, step) ? ir::max(size, 1) : step;
}

}  // namespace brasa::ops
