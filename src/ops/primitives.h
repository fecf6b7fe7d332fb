#pragma once

#include "ops/builder.h"

// The primitives as functions on Values: each adds one node to the current Builder's graph. Operands of point-wise ones
// have equal shapes and dtypes; broadcasting and promotion are one layer up (algebra.h).
namespace brasa::ops {

/// A list of literals as an argument.
Arg int_arg(const std::vector<int64_t>& items);

}  // namespace brasa::ops

namespace brasa::ops::prim {

Value unary(const char* name, Value x);
Value binary(const char* name, Value a, Value b);

Value select(Value condition, Value a, Value b);
/// Itself if x has the dtype already.
Value convert(Value x, DType dtype);
Value bitcast(Value x, DType dtype);
/// 32 random bits (int32) for each 64-bit index under a key: word index / 16 % 4 of Philox4x32-10's block offset / 4 +
/// index / 64 * 16 + index % 16, so that four vectors of 16 lanes take the four words of one vector of blocks.
Value philox(Value seed, Value offset, Value index);

Value full(const Number& value, const Shape& shape, DType dtype);
/// 0, 1, … along `dim`.
Value iota(const Shape& shape, int64_t dim, DType dtype);
/// A size as an int64 tensor without dimensions.
Value size_value(Expr e);

/// Operand dimension i becomes result dimension dims[i]; it has that size, or size 1. Dimensions ascend; equal ones give the
/// diagonal of those operand dimensions.
Value broadcast(Value x, const Shape& shape, const std::vector<int64_t>& dims);
Value reshape(Value x, const Shape& shape);
Value transpose(Value x, const std::vector<int64_t>& dims);
/// Elements start[d] + i * step[d], i < size[d]; steps are positive.
Value slice(Value x, const std::vector<Expr>& start, const Shape& size, const std::vector<Expr>& step);
/// `low` elements of `value` (rank 0) before, `high` after and `interior` between any two; none negative.
Value pad(Value x, Value value, const std::vector<Expr>& low, const std::vector<Expr>& high,
          const std::vector<Expr>& interior);
/// A tensor of the shape `whole` whose slice from `start` in these steps is `part`, and that is 0 elsewhere.
Value zeros_around(Value part, const std::vector<Expr>& start, const std::vector<Expr>& step, const Shape& whole);
Value concat(const std::vector<Value>& xs, int64_t dim);
Value reverse(Value x, const std::vector<int64_t>& dims);
/// Sliding windows: dimension `dim` becomes the number of windows, and a last dimension of `size` is added;
/// out[…, o, …, k] = x[…, o * step + k * dilation, …].
Value window(Value x, int64_t dim, Expr size, Expr step, Expr dilation);

/// The index tensors (int64, all of one shape S) pick along `dims`: the result has shape S, then x's other dimensions.
/// Indices must be in range (a composition adds the check); one that is not gives an arbitrary element.
Value gather(Value x, const std::vector<Value>& indices, const std::vector<int64_t>& dims);
/// x with `updates` (shaped as gather's result) put there. combine: "" (an arbitrary one wins where indices repeat),
/// add, mul, max, min.
Value scatter(Value x, const std::vector<Value>& indices, Value updates, const std::vector<int64_t>& dims,
              const std::string& combine);

/// Removes `dims`. combiner: add, mul, max, min (NaN wins), and, or. Integers accumulate in their own dtype.
Value reduce(Value x, const std::vector<int64_t>& dims, const std::string& combiner);
/// Index (int64) of the first greatest ("max") or smallest ("min") element; NaN wins. Removes `dim`.
Value arg_reduce(Value x, int64_t dim, const std::string& which);
/// Inclusive running combination along `dim`: add, mul, max, min.
Value scan(Value x, int64_t dim, const std::string& combiner);
/// Stable: {values, int64 indices}; NaN sorts as the greatest.
std::array<Value, 2> sort(Value x, int64_t dim, bool descending);
/// `count` elements of the sorted line from its `first` on.
std::array<Value, 2> sort(Value x, int64_t dim, bool descending, Expr first, Expr count);

/// Result: batch dimensions, a's free ones, b's free ones. Accumulates reduced floats in float32.
Value dot_general(Value a, Value b, const std::vector<int64_t>& a_contract, const std::vector<int64_t>& b_contract,
                  const std::vector<int64_t>& a_batch, const std::vector<int64_t>& b_batch);
/// x [N, groups * C, spatial…], w [O, C, spatial…]; x_dilation puts zeros between x's elements first.
Value convolution(Value x, Value w, const std::vector<Expr>& stride, const std::vector<Expr>& pad_low,
                  const std::vector<Expr>& pad_high, const std::vector<Expr>& x_dilation,
                  const std::vector<Expr>& w_dilation, Expr groups);

}  // namespace brasa::ops::prim
