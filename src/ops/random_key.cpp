#include "ops/random_key.h"

#include "ops/algebra.h"
#include "ops/rows.h"

namespace brasa::ops {

Value words(Value key, Value index) {
  const Shape& shape = shape_of(index);
  Value seed = broadcast_to(squeeze(narrow(key, 0, 0, 1), 0), shape),
        offset = broadcast_to(squeeze(narrow(key, 0, 1, 1), 0), shape);
  return pointwise("bit_and", convert(prim::philox(seed, offset, index), DType::Int64), Number(int64_t{0xffffffff}));
}

// Each element draws one 32-bit word; float64 takes the word as its top 32 bits, so that the stream is the same.
Value uniform_of(Value words, DType dtype) {
  if (dtype == DType::Float64) return convert(words, DType::Float64) * 0x1p-32;
  Value top = pointwise("shr", words, full(8, shape_of(words), DType::Int64));
  return convert(convert(top, DType::Float32) * 0x1p-24, dtype);
}

Value derived_key(Value key) {
  Value drawn = words(key, prim::iota({Expr(2)}, 0, DType::Int64));
  Value seed = pointwise("bit_or", pointwise("shl", narrow(drawn, 0, 0, 1), 31), narrow(drawn, 0, 1, 1));
  return prim::concat({seed, full(0, {Expr(1)}, DType::Int64)}, 0);
}

void add_random_key(Table& t) {
  t.op("brasa::advance_key(Tensor key, int numbers) -> Tensor")
      .doc("The generator's key (int64 [seed, offset]) after so many numbers were taken.")
      .composed([](Value key, int64_t numbers) { return key + prim::iota({2}, 0, DType::Int64) * numbers; })
      .samples({{ints(2), Arg(4)}});
}

}  // namespace brasa::ops
