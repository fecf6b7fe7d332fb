#pragma once

#include "ops/shapes.h"

// Weighted sums of neighbours at computed places: what interpolation is made of.
namespace brasa::ops {

/// How dimension `dim` is resampled: element i of the result reads x[index[i]], or the sum over k of
/// weight[k, i] * x[index[k, i]]. In memory these are neighbours along the result, as its elements are in a vector.
struct Resampling {
  int64_t dim = 0;
  Value index;   // int64 [out] or [taps, out], in range
  Value weight;  // [taps, out]; absent for [out]
};

Value resampled(Value x, const std::vector<Resampling>& axes);
/// The transpose of `resampled`, from the cotangent of its result; `shape` is x's.
Value resampled_transposed(Value ct, const Shape& shape, const std::vector<Resampling>& axes);
/// The transpose of one axis of `size` elements as another one, which reads the cotangents of at most `most` results for each element: those
/// that it is part of. `last` [out] is the last element that has a weight in each result; it ascends.
Resampling transposed(const Resampling& axis, Value last, Expr size, Expr most);

/// Whole numbers below `size`, as indices.
Value index_below(Value whole, Expr size);

/// The cubic convolution kernel (Keys 1981, eq. 4) with parameter a at a signed distance: nothing beyond 2.
Value cubic_kernel(Value distance, double a);
/// Its derivative.
Value cubic_kernel_slope(Value distance, double a);

}  // namespace brasa::ops
