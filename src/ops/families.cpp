#include "ops/families.h"

#include "ops/primitives/families.h"
#include "ops/rows.h"

namespace brasa::ops {

void add_families(Table& t) {
  add_pointwise_primitives(t);
  add_creation_primitives(t);
  add_movement_primitives(t);
  add_indexing_primitives(t);
  add_reduction_primitives(t);
  add_contraction_primitives(t);
  add_arithmetic(t);
  add_math(t);
  add_bitwise(t);
  add_comparison(t);
  add_view(t);
}

}  // namespace brasa::ops
