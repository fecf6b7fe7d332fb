#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <brasa/options.h>

#include "support/checked.h"
#include "support/small_vector.h"

namespace brasa {

/// brasa::Error where 64 bits do not hold it, as in all functions here.
inline int64_t product(std::span<const int64_t> sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n = checked_mul(n, s);
  return n;
}
/// Row-major without gaps; dimensions of size 1 and empty tensors may have any strides.
bool is_row_major(std::span<const int64_t> sizes, std::span<const int64_t> strides);
Sizes row_major_strides(std::span<const int64_t> sizes);
/// Of images whose channels, dimension 1, run fastest.
Sizes channels_last_strides(std::span<const int64_t> sizes);
/// Images, of 4 or 5 dimensions, that lie so; and not row-major as well, as those of one element each do.
bool lies_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides);
inline bool is_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides) {
  return lies_channels_last(sizes, strides) && !is_row_major(sizes, strides);
}
/// Images, of 4 or 5 dimensions, of which PyTorch says so by their strides alone: parts of channels-last ones, too.
bool suggests_channels_last(std::span<const int64_t> sizes, std::span<const int64_t> strides);
/// Of the images that have the format: 4 or 5; 0 of another format.
size_t channels_last_rank(std::optional<MemoryFormat> format);
/// Elements from the first to behind the last that is addressed (strides are not negative).
int64_t extent_of(std::span<const int64_t> sizes, std::span<const int64_t> strides);
/// Some permutation of the dimensions is row-major without gaps.
bool is_dense(std::span<const int64_t> sizes, std::span<const int64_t> strides);
/// Two index tuples may address one element.
bool may_overlap_itself(std::span<const int64_t> sizes, std::span<const int64_t> strides);

/// PyTorch's broadcasting of `sizes` into `shape`; false if they do not fit.
bool broadcast_into(Sizes& shape, std::span<const int64_t> sizes);

/// What a point-wise loop runs over: the operands' common shape with dimensions ordered by stride, merged where every
/// operand allows it, and dimensions of size 1 left out (at least one dimension stays).
struct Loop {
  Sizes sizes;                       // outermost first
  SmallVector<int64_t, 24> strides;  // of operand i in dimension d: strides[i * rank + d]
  SmallVector<int64_t, 6> order;     // order[k]: which dimension of the common shape is k-th from outside
  size_t rank() const { return sizes.size(); }
  std::span<const int64_t> strides_of(size_t operand) const { return {strides.data() + operand * rank(), rank()}; }
};

/// An operand of the loop before broadcasting.
struct OperandLayout {
  std::span<const int64_t> sizes, strides;
};

/// `shape` is the broadcast shape of all operands.
Loop make_loop(std::span<const int64_t> shape, std::span<const OperandLayout> operands);

/// The dimensions from the longest stride to the shortest, equal ones as they stand.
Sizes order_in_memory(std::span<const int64_t> strides);
/// Strides of a new dense tensor of this shape whose dimensions are nested in `order`.
Sizes strides_in_order(std::span<const int64_t> shape, std::span<const int64_t> order);

}  // namespace brasa
