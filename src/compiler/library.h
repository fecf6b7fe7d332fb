#pragma once

#include <cstdint>

#include <brasa/dtype.h>

namespace brasa::compiler {

/// Sorts along the middle of three dimensions, all tensors contiguous. Stable; NaN is the greatest.
void sort(DType dtype, const void* x, void* values, int64_t* indices, int64_t outer, int64_t length, int64_t inner,
          bool descending);

}  // namespace brasa::compiler
