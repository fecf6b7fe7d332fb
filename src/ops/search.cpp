#include "ops/search.h"

#include "ops/shapes.h"

namespace brasa::ops {
namespace {

constexpr int64_t kParts = 16;

// Is an element of an ascending line among those that are counted? NaN is the greatest.
Value before(Value element, Value x, bool equal_too) {
  Value out = equal_too ? ge(x, element) : gt(x, element);
  if (!is_floating(dtype_of(x))) return out;
  Value last = is_nan(x);
  return logical_or(out, equal_too ? last : logical_and(last, eq(element, element)));
}

// lines [r, n], x [r, m], as below.
Value compared_with_all(Value lines, Value x, bool equal_too) {
  Value all = before(repeat_along(lines, 1, size_of(x, 1)), repeat_along(x, 2, size_of(lines, 1)), equal_too);
  // They are few: numbers as wide as the elements make whole vectors.
  DType t = size_of(dtype_of(x)) > 4 ? DType::Int64 : DType::Int32;
  return convert(sum(convert(all, t), {2}), DType::Int64);
}

// Digits of the longest line's count, an even number of them: of all lengths up to it there is one graph.
int64_t digits_of(Expr n) {
  int64_t digits = 4;
  while (digits < 62 && !is_less(n, int64_t{1} << digits)) digits += 2;
  return digits;
}

// lines [r, n], x [r, m]. First the part of a line that a value belongs into, by the parts' ends; then the place in it, binary digit by digit,
// for which an element each is read. Beyond a line's end its last element answers for all. Short numbers are gathered by, two at the price of one.
Value counted_in(Value lines, Value x, bool equal_too) {
  Expr n = size_of(lines, 1);
  const Shape& shape = shape_of(x);
  if (is_less(n, kParts)) return compared_with_all(lines, x, equal_too);
  int64_t digits = digits_of(n);
  DType t = digits < 32 ? DType::Int32 : DType::Int64;
  bool single = same_size(size_of(lines, 0), 1);
  Value line = single ? squeeze(lines, 0) : lines, row = single ? Value{} : prim::iota(shape, 0, DType::Int64);
  auto is_before = [&](Value place) {
    Value element = single ? prim::gather(line, {place}, {0}) : prim::gather(line, {row, place}, {0, 1});
    return before(element, x, equal_too);
  };
  Expr part = ceildiv(n, kParts);
  Value count = full(0, shape, t);
  for (int64_t i = 1; i < kParts; ++i) count = count + convert(is_before(size_tensor(part * i - 1, shape)), t);
  count = count * convert(size_tensor(part, shape), t);
  for (int64_t step = (int64_t{1} << digits) / kParts / 2; step > 0; step /= 2) {
    Value more = count + full(step, shape, t);
    count = where(is_before(convert(more - 1, DType::Int64)), more, count);
  }
  return minimum(convert(count, DType::Int64), size_tensor(n, shape));
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
