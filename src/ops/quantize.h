#pragma once

#include "ops/algebra.h"
#include "ops/shapes.h"
#include "support/error.h"

// Affine quantisation: q = clamp(round(x / scale) + zero_point), x ≈ (q - zero_point) scale, per tensor, channel, row or
// group. Rounding is to even; 1 / scale is rounded first, as PyTorch does.
namespace brasa::ops {

inline Value rounded(Value x) { return prim::unary("round", x); }
inline Value clamped(Value x, const Number& low, const Number& high) {
  return minimum(maximum(x, constant_like(x, low)), constant_like(x, high));
}
// One parameter a channel beside x.
inline Value by_channel(const char* op, const char* what, Value v, Value x, int64_t axis) {
  BRASA_CHECK(rank_of(v) == 1 && same_size(size_of(v, 0), size_of(x, axis)), op, ": expected ", what, " of ",
              size_of(x, axis), " elements for axis ", axis, " of ", type_of(x), ", got ", type_of(v));
  return broadcast_to(along(v, axis, rank_of(x)), shape_of(x));
}
inline Value whole_tensor(const char* op, const char* what, Value v, Value x) {
  BRASA_CHECK(same_size(type_of(v).numel(), 1), op, ": expected ", what, " of one element, got ", type_of(v));
  return broadcast_to(prim::reshape(v, {}), shape_of(x));
}

}  // namespace brasa::ops
