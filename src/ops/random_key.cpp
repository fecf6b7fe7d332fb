#include "ops/algebra.h"
#include "ops/rows.h"

namespace brasa::ops {

void add_random_key(Table& t) {
  t.op("brasa::advance_key(Tensor key, int numbers) -> Tensor")
      .doc("The generator's key (int64 [seed, offset]) after so many numbers were taken.")
      .composed([](Value key, int64_t numbers) { return key + prim::iota({2}, 0, DType::Int64) * numbers; })
      .samples({{ints(2), Arg(4)}});
}

}  // namespace brasa::ops
