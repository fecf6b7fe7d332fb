#pragma once

#include "ops/shapes.h"

// Windows over planes: what pools share.
namespace brasa::ops {

/// Windows of one size at even steps along the last dimensions of a tensor.
struct Window {
  Shape kernel, stride, padding, dilation;
  bool ceil_mode = false;
  size_t spatial() const { return kernel.size(); }
};
/// From a pool's arguments, each of n numbers or one; without a stride windows lie beside each other.
Window window_of(size_t n, const Shape& kernel, const Shape& stride, const Shape& padding, const Shape& dilation,
                 bool ceil_mode);
/// Number of windows along a dimension. With ceil_mode the last may hang over the end, if it starts inside or in the left padding.
Expr window_count(const Window& w, size_t d, Expr size);
/// x [batch, channels, spatial…] as [batch, channels, windows…, positions in the window…]; padded with `fill`.
Value windows_of(Value x, const Window& w, const Number& fill);

/// How many windows along a dimension may hold an element.
Expr windows_near(const Window& w, size_t d);
/// A value of each window, [batch, channels, windows…], for the elements of a plane, as [batch, channels, elements…, near…]: along each
/// dimension of the windows that may hold the element, the earliest first; `none` where there is no window.
Value seen_from_elements(Value v, const Window& w, const Shape& plane, Value none);
/// The position of an element in each of these windows, [elements…, near…], their dimensions merged; a negative number where the window
/// does not hold the element.
Value position_in_windows(const Window& w, const Shape& plane, DType dtype);
/// Positions need few bits: they go to memory, and are compared, as numbers that are no wider than the elements. Bytes take longer: without
/// masks for them what lies over a border is read one by one.
DType dtype_of_positions(const Window& w);

/// A batch of planes, none of them empty, from a pool's operand with or without a batch.
Value batched(const char* op, Value x, size_t n, bool& unbatched, bool needs_channels = true);
inline Value restored(Value x, bool unbatched) { return unbatched ? squeeze(x, 0) : x; }
/// brasa::Error unless a gradient has the planes that the input has.
void check_planes(const char* op, Value g, Value x, size_t n);

/// Gradients put back where the indices point in each of x's planes of n dimensions.
Value max_unpooled(Value g, Value x, Value indices, size_t n);

/// Rows of the same family, of pools with a given number of windows.
void add_adaptive_pools(Table& t);

/// An operand of a pool for samples: `lead` sizes, and `spatial` equal ones.
TensorSample planes_sample(std::initializer_list<int64_t> lead, int spatial, int64_t size);

}  // namespace brasa::ops
