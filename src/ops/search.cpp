#include "ops/search.h"

#include "ops/shapes.h"

namespace brasa::ops {
namespace {

// Elements of the last dimension.
constexpr int64_t kBlock = 64;

// Of ascending elements along the last dimension.
Value counted_before(Value elements, Value x, bool equal_too) {
  Value before = logical_not(equal_too ? lt(x, elements) : le(x, elements));
  if (is_floating(dtype_of(x))) before = logical_and(before, eq(elements, elements));
  if (is_floating(dtype_of(x)) && equal_too) before = logical_or(before, is_nan(x));
  // They are few: numbers as wide as the elements make whole vectors.
  DType count = size_of(dtype_of(x)) > 4 ? DType::Int64 : DType::Int32;
  return convert(sum(convert(before, count), {rank_of(elements) - 1}), DType::Int64);
}

// lines [r, n], x [r, m]. First the block of a long line, by the blocks' last elements, then the place in it: m log n comparisons, of
// neighbours.
Value counted_in(Value lines, Value x, bool equal_too) {
  Expr r = size_of(x, 0), m = size_of(x, 1), n = size_of(lines, 1);
  auto compared = [&](Value elements, Expr count) {
    return counted_before(elements, repeat_along(x, 2, count), equal_too);
  };
  if (is_less(n, kShortLine)) return compared(repeat_along(lines, 1, m), n);
  Expr whole = ir::floordiv(n, kBlock);
  Value blocks = split_dim(narrow(lines, 1, 0, whole * kBlock), 1, {whole, kBlock});
  Value ends = reduce(blocks, {2}, false, "max");  // the last elements, side by side in memory
  Value start = counted_in(ends, x, equal_too) * kBlock;
  // The last elements are no whole block: what is before them is before all values that get here.
  start = minimum(start, size_tensor(n - kBlock, {r, m}));
  Value row = prim::iota({r, m}, 0, DType::Int64);
  Value near = prim::gather(prim::window(lines, 1, kBlock, 1, 1), {row, start}, {0, 1});
  return start + compared(near, kBlock);
}

}  // namespace

Value count_before(Value lines, Value x, bool equal_too) {
  DType t = result_type({lines, x});
  if (t == DType::Bool) t = DType::UInt8;  // ordered
  lines = convert(lines, t), x = convert(x, t);
  int64_t rank = rank_of(lines);
  const Shape shape = shape_of(x);
  if (rank == 1) {
    Value counts = counted_in(unsqueeze(lines, 0), prim::reshape(x, {1, type_of(x).numel()}), equal_too);
    return prim::reshape(counts, shape);
  }
  Value flat = rank == 2 ? lines : merge_dims(lines, 0, rank - 2);
  Value counts = counted_in(flat, prim::reshape(x, {size_of(flat, 0), size_of(x, rank - 1)}), equal_too);
  return prim::reshape(counts, shape);
}

}  // namespace brasa::ops
