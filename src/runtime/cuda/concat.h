#pragma once

#include <span>

#include "runtime/cuda/ready_kernels.h"

// Many tensors one behind the other by a kernel of our own, whose parameters are a table of them.
namespace brasa::runtime::cuda {

/// Contiguous rows of so many bytes; as many of each as the result has.
struct Rows {
  const void* data;
  int64_t bytes;
};
/// Each of the result's rows is a row of each part, in order.
void run_concat(std::span<const Rows> parts, int64_t rows, void* result, Device& device, Stream stream);

/// What a kernel is made for: the bytes that a thread copies at once, a power of 2 up to 16.
struct ConcatKind {
  int unit;
  auto operator<=>(const ConcatKind&) const = default;
};
WrittenKernel concat_kernel(const ConcatKind& kind);

}  // namespace brasa::runtime::cuda
