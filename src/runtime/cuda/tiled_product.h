#pragma once

#include <compare>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/epilogue.h"
#include "runtime/cuda/ready_kernels.h"

// Products of matrices of reduced floats by kernels of our own for Hopper's tensor cores, whose text tiled_product_kernel.cpp writes. A function
// of each element can be computed before it is written, while the next tile is multiplied.
namespace brasa::runtime::cuda {

/// Of the result that a block makes at a time, and how much of each row and column it sums up at a time.
constexpr int kTileRows = 128, kTileColumns = 256, kTileSums = 64;

/// What a kernel is made for.
struct TiledProductKind {
  DType dtype;           // of operands and result: float16 or bfloat16
  bool right_along_sum;  // neighbours in a column of the right operand are neighbours in memory, else those in a row
  bool bias;
  Epilogue epilogue;
  auto operator<=>(const TiledProductKind&) const = default;
};

/// How many tiles its result has.
int64_t tiles_of(const Product& p);
/// Whether there is a kernel for these operands as they lie. `count` is 1, and the left operand's neighbours in a row are neighbours in memory.
bool takes_tiled_product(const Product& p, const AfterProduct& after, const Device& device);
/// result = epilogue(left · right + bias, other), rounded before and after.
void run_tiled_product(const Product& p, const AfterProduct& after, Device& device, Stream stream);

WrittenKernel tiled_product_kernel(const TiledProductKind& kind);

}  // namespace brasa::runtime::cuda
