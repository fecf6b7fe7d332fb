#include "ops/families.h"

#include <vector>

#include "ops/fourier.h"
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
  add_factorisation_primitives(t);
  add_fourier_primitives(t);
  add_arithmetic(t);
  add_math(t);
  add_complex(t);
  add_fft(t);
  add_stft(t);
  add_bitwise(t);
  add_comparison(t);
  add_activation(t);
  add_activation_backward(t);
  add_modified_bessel(t);
  add_bessel(t);
  add_airy(t);
  add_normal_functions(t);
  add_zeta(t);
  add_chebyshev(t);
  add_orthogonal(t);
  add_incomplete_gamma(t);
  add_integers(t);
  add_membership(t);
  add_histogram(t);
  add_quantile(t);
  add_statistics(t);
  add_differences(t);
  add_combinatorics(t);
  add_windows(t);
  add_strided(t);
  add_questions(t);
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
  add_linalg(t);
  add_linalg_solve(t);
  add_linalg_spectral(t);
  add_optimizer(t);
  add_upsample(t);
  add_grid_sample(t);
  add_fractional_pool(t);
  add_rnn(t);
  add_packed_sequence(t);
  add_embedding_bag(t);
  add_segment(t);
  add_margin_loss(t);
  add_ctc_loss(t);
  add_quantization(t);
  add_attention_kernels(t);
  add_fused(t);
  additional().too_late = true;
  for (auto family : additional().families) family(t);
}

void add_family(void (*family)(Table&)) {
  BRASA_CHECK(!additional().too_late, "the operator table is in use already; families are added before its first use");
  additional().families.push_back(family);
}

}  // namespace brasa::ops
