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
