// All versions of the driver's functions, as driver.cpp has them.
#if __has_include(<cuda.h>)
#include <cuda.h>
#define BRASA_CHECK_PROTOTYPES
#endif

#include "runtime/cuda/tiled_product.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "runtime/cuda/driver.h"

namespace brasa::runtime::cuda {
namespace {

// Numbers of the driver's enumerations.
constexpr int kFloat16Map = 6, kBFloat16Map = 9, kNotInterleaved = 0, kSwizzled128 = 3, kPromoted256 = 3, kZeros = 0;
#ifdef BRASA_CHECK_PROTOTYPES
static_assert(kFloat16Map == CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && kBFloat16Map == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(kNotInterleaved == CU_TENSOR_MAP_INTERLEAVE_NONE && kSwizzled128 == CU_TENSOR_MAP_SWIZZLE_128B &&
              kPromoted256 == CU_TENSOR_MAP_L2_PROMOTION_L2_256B && kZeros == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) && alignof(TensorMap) >= alignof(CUtensorMap));
#endif

// Rows in memory, one `step` elements behind the other.
struct Rows {
  const void* data;
  int64_t rows, columns, step;
};

// The copy engine's rules: addresses and steps of 16 bytes. One row has no step.
constexpr int64_t kChunk = 16, kChunkElements = 8;
bool lie_well(const Rows& r) {
  bool apart = r.rows == 1 || (r.step >= r.columns && r.step % kChunkElements == 0);
  return apart && alignment(r.data, kChunk) == kChunk;
}

// The right operand's columns as rows, or its rows.
std::optional<Rows> right_rows(const Product& p, bool along_sum) {
  if ((along_sum ? p.right.row : p.right.column) != 1) return {};
  Rows out = along_sum ? Rows{p.right.data, p.columns, p.inner, p.right.column}
                       : Rows{p.right.data, p.inner, p.columns, p.right.row};
  if (!lie_well(out)) return {};
  return out;
}
Rows left_rows(const Product& p) { return {p.left.data, p.rows, p.inner, p.left.row}; }
Rows result_rows(const Product& p) { return {p.to, p.rows, p.columns, p.to_row}; }
// What is written and read besides, in this order.
std::vector<Rows> further_rows(const Product& p, const AfterProduct& after) {
  std::vector<Rows> out;
  if (after.epilogue.writes_two()) out.push_back({after.first, p.rows, p.columns, after.first_row});
  if (after.epilogue.reads_other()) out.push_back({after.other, p.rows, p.columns, after.other_row});
  return out;
}

// Copies have so many rows and columns.
TensorMap map_of(const Rows& r, DType dtype, int rows) {
  constexpr unsigned kColumns = 64;
  int64_t step = r.rows == 1 ? (r.columns + kChunkElements - 1) / kChunkElements * kChunkElements : r.step;
  const uint64_t sizes[] = {static_cast<uint64_t>(r.columns), static_cast<uint64_t>(r.rows)};
  const uint64_t steps[] = {static_cast<uint64_t>(step * size_of(dtype))};
  const unsigned box[] = {kColumns, static_cast<unsigned>(rows)}, ones[] = {1, 1};
  TensorMap out;
  check(driver().tensor_map_encode(&out, dtype == DType::Float16 ? kFloat16Map : kBFloat16Map, 2,
                                   const_cast<void*>(r.data), sizes, steps, box, ones, kNotInterleaved, kSwizzled128,
                                   kPromoted256, kZeros),
        "cuTensorMapEncodeTiled");
  return out;
}

}  // namespace

int64_t tiles_of(const Product& p) { return pieces(p.rows, kTileRows) * pieces(p.columns, kTileColumns); }

bool takes_tiled_product(const Product& p, const AfterProduct& after, const Device& device) {
  constexpr int64_t kMost = int64_t{1} << 31;  // numbers of 32 bits count them
  bool has_groups = is_hopper(device) && device.properties().limits.minor == 0;
  if (!has_groups || !find_driver() || !driver().tensor_map_encode) return false;
  if (!is_reduced_floating(p.operands) || p.result != p.operands || p.count != 1 || p.left.column != 1) return false;
  if (p.inner < 1 || std::max({p.rows, p.inner, p.columns}) >= kMost) return false;
  // The kernel reads two neighbours of the bias at a time.
  if (p.bias && (p.columns % 2 != 0 || alignment(p.bias, 4) != 4)) return false;
  std::vector<Rows> further = further_rows(p, after);
  return lie_well(left_rows(p)) && lie_well(result_rows(p)) && std::all_of(further.begin(), further.end(), lie_well) &&
         (right_rows(p, true) || right_rows(p, false));
}

void run_tiled_product(const Product& p, const AfterProduct& after, Device& device, Stream stream) {
  if (p.rows == 0 || p.columns == 0) return;
  constexpr int kRowsOfBlock =
      64;  // of a result, of what is read at its places, or of a right operand that rows are summed over
  std::optional<Rows> columns = right_rows(p, true);
  std::vector<TensorMap> maps = {
      map_of(left_rows(p), p.operands, kTileRows),
      columns ? map_of(*columns, p.operands, kTileColumns) : map_of(*right_rows(p, false), p.operands, kRowsOfBlock),
      map_of(result_rows(p), p.result, kRowsOfBlock)};
  for (const Rows& r : further_rows(p, after)) maps.push_back(map_of(r, p.result, kRowsOfBlock));
  int64_t across = pieces(p.columns, kTileColumns), tiles = tiles_of(p);
  int64_t blocks = std::min<int64_t>(tiles, device.properties().processors);
  auto size = [](int64_t n) { return static_cast<Slot>(n); };
  const Slot slots[] = {reinterpret_cast<Slot>(p.bias),
                        size(pieces(p.inner, kTileSums)),
                        size(across),
                        size(tiles),
                        size(blocks),
                        size(p.columns)};
  TiledProductKind kind{p.operands, columns.has_value(), p.bias != nullptr, after.epilogue};
  ready_kernel(tiled_product_kernel, kind, device).launch(blocks, slots, device, stream, maps);
}

}  // namespace brasa::runtime::cuda
