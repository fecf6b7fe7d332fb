#pragma once

#include <brasa/tensor.h>

#include "ops/table.h"

namespace brasa::test {

/// How a tensor lies in memory.
enum class Layout : uint8_t {
  RowMajor,
  Step,        // every second element of its memory, behind the first
  Transposed,  // the first dimension is the innermost
  Expanded,    // the first dimension repeats one element
};
const char* name(Layout layout);

/// The elements that a tensor with these ones has in this layout.
ops::Array fitting(const ops::Array& a, Layout layout);
/// A tensor with the elements of an array that fits the layout; what lies between them in memory is not a number.
Tensor placed(const ops::Array& a, Layout layout);
/// A tensor's elements.
ops::Array elements(const Tensor& t);

}  // namespace brasa::test
