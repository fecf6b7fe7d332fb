#pragma once

#include "ops/shapes.h"

namespace brasa::ops {

/// Windows along dimensions of a tensor, whose elements are `gaps` apart: next to each other (1), or any number if windows begin at every element.
struct Overlap {
  std::vector<int64_t> dims, sizes, steps, gaps;
  /// How many windows lie over an element, along all of the dimensions.
  int64_t near() const;
};
/// What windows give back to the elements that they lie over: [..., windows, ..., sizes...], the windows along `dims`, as as many elements along
/// each of these, window i of size s and step t over i·t to i·t + s - 1, or with a gap g over i, i + g to i + (s - 1)·g.
Value overlapped(Value ct, const Overlap& o, const Shape& elements);

}  // namespace brasa::ops
