#include "ops/families.h"

#include <vector>

#include "ops/primitives/families.h"
#include "ops/rows.h"
#include "support/error.h"

namespace brasa::ops {
namespace {

struct Additional {
  std::vector<void (*)(Table&)> families;
  bool too_late = false;
};
Additional& additional() {
  static Additional instance;
  return instance;
}

}  // namespace

void add_families(Table& t) {
  add_pointwise_primitives(t);
  add_creation_primitives(t);
  add_movement_primitives(t);
  add_indexing_primitives(t);
  add_reduction_primitives(t);
  add_contraction_primitives(t);
  add_arithmetic(t);
  add_math(t);
  add_complex(t);
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
  add_slicing(t);
  add_movement(t);
  add_padding(t);
  add_indexing(t);
  add_scatter(t);
  add_counted(t);
  add_contraction(t);
  add_einsum(t);
  add_convolution(t);
  add_pooling(t);
  add_fold(t);
  add_distance(t);
  add_normalization(t);
  add_attention(t);
  add_random_key(t);
  add_optimizer(t);
  additional().too_late = true;
  for (auto family : additional().families) family(t);
}

void add_family(void (*family)(Table&)) {
  BRASA_CHECK(!additional().too_late, "the operator table is in use already; families are added before its first use");
  additional().families.push_back(family);
}

}  // namespace brasa::ops
