#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/ready_kernels.h"

// Products of matrices of reduced floats by kernels of our own for Hopper's tensor cores, whose text tiled_product_kernel.cpp writes. A function
// of each element can be computed before it is written, while the next tile is multiplied.
namespace brasa::runtime::cuda {

/// What an element becomes: numbers of float32, each made of earlier ones. The first is the element, with its bias, rounded to the result's dtype;
/// the last is what is written. None: the element itself.
struct Epilogue {
  enum class Op : uint8_t { Number, Add, Sub, Mul, Fma, Min, Max, Abs, Neg, Exp2, Reciprocal, Rsqrt, Less, Select };
  struct Step {
    Op op;
    std::array<int16_t, 3> of = {};  // which numbers: 0 is the element, i + 1 what step i gave
    uint32_t bits = 0;               // of a Number, as float32
    auto operator<=>(const Step&) const = default;
  };
  std::vector<Step> steps;
  auto operator<=>(const Epilogue&) const = default;
};

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

/// Whether there is a kernel for these operands as they lie. `count` is 1, and the left operand's neighbours in a row are neighbours in memory.
bool takes_tiled_product(const Product& p, const Device& device);
/// result = epilogue(left · right + bias).
void run_tiled_product(const Product& p, const Epilogue& epilogue, Device& device, Stream stream);

WrittenKernel tiled_product_kernel(const TiledProductKind& kind);

}  // namespace brasa::runtime::cuda
