#include "runtime/cuda/small_product.h"

#include <algorithm>
#include <array>
#include <bit>

#include "runtime/float32_products.h"

namespace brasa::runtime::cuda {
namespace {

int64_t tiles_of_matrix(const Product& p) { return pieces(p.rows, kSmallTile) * pieces(p.columns, kSmallTile); }

// Of an operand in steps of `along` elements along the sum, and of `step` from one such row to the next one.
bool lies_along(const Product& p, const Matrix& m, int64_t along, int64_t step) {
  constexpr int64_t kChunk = 16, kEach = 8;
  if (along != 1 || !is_reduced_floating(p.operands)) return along == 1;
  return p.inner % kEach == 0 && step % kEach == 0 && m.batch % kEach == 0 && alignment(m.data, kChunk) == kChunk;
}

// Each step waits for memory: more warps have fewer steps each.
int warps_of(const Product& p) {
  constexpr int kLeast = 2, kMost = 8;
  if (!is_reduced_floating(p.operands)) return kFloat32Warps;
  auto parts = static_cast<unsigned>(std::clamp<int64_t>(pieces(p.inner, kSmallStep), kLeast, kMost));
  return static_cast<int>(std::bit_ceil(parts));
}

SmallProductKind kind_of(const Product& p, const Device& device) {
  return {p.operands,
          p.result,
          lies_along(p, p.left, p.left.column, p.left.row),
          lies_along(p, p.right, p.right.row, p.right.column),
          p.bias != nullptr,
          is_hopper(device),
          warps_of(p)};
}

}  // namespace

// Where all blocks run at once and sums are not long. Of reduced floats an H200 then takes at most 1 us longer than with cuBLASLt, mostly less, and the
// host 4 to 7 less.
bool takes_small_product(const Product& p, const Device& device) {
  constexpr int kAmpere = 8;
  constexpr int64_t kMostSum = 1024, kMostSumOfFloats = 512, kMostSumOfColumns = 128;
  if (device.properties().limits.major < kAmpere) return false;
  bool reduced = is_reduced_floating(p.operands);
  if (!reduced && (p.operands != DType::Float32 || float32_products_in_tf32())) return false;
  SmallProductKind kind = kind_of(p, device);
  bool along = kind.left_along && kind.right_along;
  int64_t most_sum = !reduced ? kMostSumOfFloats : along ? kMostSum : kMostSumOfColumns;
  if (std::min({p.rows, p.columns, p.inner, p.count}) < 1 || p.inner > most_sum) return false;
  int64_t blocks = device.properties().processors * int64_t{reduced && along ? 2 : 1};
  // Each alone first: their product may not be a number.
  return std::max({p.rows, p.columns, p.count}) <= blocks * kSmallTile && p.count * tiles_of_matrix(p) <= blocks;
}

void run_small_product(const Product& p, Device& device, Stream stream) {
  SmallProductKind kind = kind_of(p, device);
  auto size = [](int64_t n) { return static_cast<Slot>(n); };
  auto address = [](const void* at) { return reinterpret_cast<Slot>(at); };
  auto bytes = [&](int64_t elements, DType dtype) { return size(elements * size_of(dtype)); };
  int64_t tiles = tiles_of_matrix(p), part = pieces(pieces(p.inner, kSmallStep), kind.warps) * kSmallStep;
  const std::array slots = {address(p.left.data),
                            address(p.right.data),
                            address(p.bias),
                            address(p.to),
                            size(p.rows),
                            size(p.columns),
                            size(p.inner),
                            size(part),
                            size(pieces(p.columns, kSmallTile)),
                            size(tiles),
                            bytes(p.left.row, p.operands),
                            bytes(p.left.column, p.operands),
                            bytes(p.left.batch, p.operands),
                            bytes(p.right.column, p.operands),
                            bytes(p.right.row, p.operands),
                            bytes(p.right.batch, p.operands),
                            bytes(p.to_row, p.result),
                            bytes(p.to_batch, p.result)};
  ready_kernel(small_product_kernel, kind, device).launch(p.count * tiles, slots, device, stream);
}

}  // namespace brasa::runtime::cuda
