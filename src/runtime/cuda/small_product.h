#pragma once

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/ready_kernels.h"

// Products of small matrices by kernels of our own: what takes a GPU less time than a host takes to call cuBLASLt, 6 to 14 us with a bias, where a
// launch takes 3.
namespace brasa::runtime::cuda {

/// What a kernel is made for.
struct SmallProductKind {
  DType operands, result;
  // An operand's neighbours in memory lie along the sum: of reduced floats 16 bytes of them for all of it.
  bool left_along, right_along;
  bool bias;
  bool early;  // for Hopper: begins while what the stream was given before still runs
  int warps;   // of a block, each of which has a part of the sum
  auto operator<=>(const SmallProductKind&) const = default;
};

/// Whether such a kernel computes it there: of float32, unless that may be rounded to TF32, or of reduced floats.
bool takes_small_product(const Product& product, const Device& device);
void run_small_product(const Product& product, Device& device, Stream stream);

/// The side of a block's part of a result.
inline constexpr int kSmallTile = 32;
/// Elements of the sum: that a warp takes in a step, of reduced floats, and a block, of float32, which has so many warps.
inline constexpr int kSmallStep = 32, kFloat32Step = 64, kFloat32Warps = 8;
WrittenKernel small_product_kernel(const SmallProductKind& kind);

}  // namespace brasa::runtime::cuda
