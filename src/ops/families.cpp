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
  add_activation(t);
  add_activation_backward(t);
  add_reduction(t);
  add_moments(t);
  add_norm(t);
  add_scan(t);
  add_softmax(t);
  add_creation(t);
  add_random(t);
  add_loss(t);
  add_nll(t);
  add_view(t);
  add_movement(t);
  add_indexing(t);
  add_scatter(t);
  add_contraction(t);
  add_convolution(t);
  add_pooling(t);
  add_normalization(t);
  add_attention(t);
  add_random_key(t);
  add_optimizer(t);
}

}  // namespace brasa::ops
