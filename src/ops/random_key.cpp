#include "ops/random_key.h"

#include "ops/algebra.h"
#include "ops/rows.h"

namespace brasa::ops {

Value derived_key(Value key) {
  Value seed = broadcast_to(narrow(key, 0, 0, 1), {Expr(2)}), offset = broadcast_to(narrow(key, 0, 1, 1), {Expr(2)});
  Value words = convert(prim::philox(seed, offset, prim::iota({Expr(2)}, 0, DType::Int64)), DType::Int64);
  return prim::concat({narrow(words, 0, 0, 1), zeros_like(narrow(words, 0, 1, 1))}, 0);
}

void add_random_key(Table& t) {
  t.op("brasa::advance_key(Tensor key, int numbers) -> Tensor")
      .doc("The generator's key (int64 [seed, offset]) after so many numbers were taken.")
      .composed([](Value key, int64_t numbers) { return key + prim::iota({2}, 0, DType::Int64) * numbers; })
      .samples({{ints(2), Arg(4)}});
}

}  // namespace brasa::ops
