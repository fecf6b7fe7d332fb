#include "ops/algebra.h"
#include "ops/families.h"

// An operator is one row in one file: this is all that there is of aten::toy_cube.
namespace brasa::ops {

void add_toys(Table& t) {
  t.op("aten::toy_cube(Tensor self, *, Scalar scale=1) -> Tensor")
      .doc("scale * x³.")
      .composed_in_opmath([](Value x, Number scale) { return x * x * x * scale; })
      .samples({{floats(2, 3)}, {floats(0)}, {floats(7).strided(2), 0.5}});
}
[[maybe_unused]] static const bool added = (add_family(add_toys), true);

}  // namespace brasa::ops
