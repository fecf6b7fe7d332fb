#include "ops/families.h"

#include <vector>

#include "ops/fourier.h"
#include "ops/primitives/families.h"
#include "ops/rows.h"
#include "ops/table.h"
#include "support/error.h"
#include "support/lazy.h"

namespace brasa::ops {
namespace {

struct Listed {
  std::string_view title;
  void (*add)(Table& table);
};
// Their titles name the pages of the reference.
const Listed kPrimitives[] = {
    {"Primitives: point-wise", add_pointwise_primitives},
    {"Primitives: creation", add_creation_primitives},
    {"Primitives: movement", add_movement_primitives},
    {"Primitives: indexing", add_indexing_primitives},
    {"Primitives: reductions", add_reduction_primitives},
    {"Primitives: contractions", add_contraction_primitives},
    {"Primitives: factorisations", add_factorisation_primitives},
    {"Primitives: Fourier transforms", add_fourier_primitives},
    {"Primitives: sparse matrices", add_sparse_primitives},
    {"Primitives: complex numbers in memory", add_parts_primitives},
    {"Primitives: loops", add_loop_primitives},
    {"Primitives: branches", add_branch_primitives},
    {"Primitives: loops until a value", add_while_primitives},
};
const Listed kOperators[] = {
    {"Arithmetic", add_arithmetic},
    {"Limits and extrema", add_extrema},
    {"Powers", add_powers},
    {"Mathematical functions", add_math},
    {"Classes of numbers", add_number_classes},
    {"Complex numbers", add_complex},
    {"Fourier transforms", add_fft},
    {"Short-time Fourier transforms", add_stft},
    {"Bit operations", add_bitwise},
    {"Comparison and logic", add_comparison},
    {"Activations", add_activation},
    {"Gradients of activations", add_activation_backward},
    {"Modified Bessel functions", add_modified_bessel},
    {"Bessel functions", add_bessel},
    {"Airy functions", add_airy},
    {"Functions of the normal distribution", add_normal_functions},
    {"Zeta and polygamma functions", add_zeta},
    {"Chebyshev polynomials", add_chebyshev},
    {"Other orthogonal polynomials", add_orthogonal},
    {"Incomplete gamma functions", add_incomplete_gamma},
    {"Integers and parts of numbers", add_integers},
    {"Membership and search", add_membership},
    {"Histograms and counts", add_histogram},
    {"Quantiles and medians", add_quantile},
    {"Statistics", add_statistics},
    {"Differences and integrals", add_differences},
    {"Combinations and products", add_combinatorics},
    {"Window functions", add_windows},
    {"Strided copies", add_strided},
    {"Questions about tensors", add_questions},
    {"Reductions", add_reduction},
    {"Means and variances", add_moments},
    {"Norms", add_norm},
    {"Scans", add_scan},
    {"Softmax", add_softmax},
    {"Creation", add_creation},
    {"Random numbers", add_random},
    {"Random choices", add_random_choices},
    {"Distributions", add_distributions},
    {"Gradients of distributions", add_distribution_gradients},
    {"Losses", add_loss},
    {"Classification losses", add_nll},
    {"Views", add_view},
    {"Slicing and joining", add_slicing},
    {"Movement", add_movement},
    {"Padding", add_padding},
    {"Indexing", add_indexing},
    {"Scatter", add_scatter},
    {"Scatter into views", add_view_scatter},
    {"Results of unknown size", add_counted},
    {"Matrix products", add_contraction},
    {"Products of several operands", add_products_of_several},
    {"Einsum", add_einsum},
    {"Convolution", add_convolution},
    {"Pooling", add_pooling},
    {"Fold and unfold", add_fold},
    {"Distances", add_distance},
    {"Normalization", add_normalization},
    {"Normalization of channels", add_channel_norms},
    {"Attention", add_attention},
    {"Random keys", add_random_key},
    {"Linear algebra", add_linalg},
    {"Linear systems", add_linalg_solve},
    {"Spectral decompositions", add_linalg_spectral},
    {"Norms of matrices", add_linalg_norms},
    {"Optimizer steps", add_optimizer},
    {"Upsampling", add_upsample},
    {"Grid sampling", add_grid_sample},
    {"Fractional pooling", add_fractional_pool},
    {"Recurrent layers", add_rnn},
    {"Packed sequences", add_packed_sequence},
    {"Embedding bags", add_embedding_bag},
    {"Segments", add_segment},
    {"Margin losses", add_margin_loss},
    {"CTC loss", add_ctc_loss},
    {"Quantization", add_quantization},
    {"Fake quantization", add_fake_quantization},
    {"Attention kernels", add_attention_kernels},
    {"Fused operators", add_fused},
};

struct Additional {
  std::vector<Listed> families;
  bool too_late = false;
};
Additional& additional() {
  static constinit Lazy<Additional> instance;
  return *instance;
}

std::vector<Family>& added() {
  static constinit Lazy<std::vector<Family>> instance;
  return *instance;
}

void add(const Listed& family, Table& t) {
  size_t first = t.rows().size();
  family.add(t);
  added().push_back({family.title, first, t.rows().size()});
}

}  // namespace

void add_primitives(Table& t) {
  for (const Listed& family : kPrimitives) add(family, t);
}

void add_operators(Table& t) {
  for (const Listed& family : kOperators) add(family, t);
  additional().too_late = true;
  for (const Listed& family : additional().families) add(family, t);
}

void add_family(void (*family)(Table&), std::string_view title) {
  BRASA_CHECK(!additional().too_late, "the operator table is in use already; families are added before its first use");
  additional().families.push_back({title, family});
}

std::span<const Family> families() {
  table();
  return added();
}

}  // namespace brasa::ops
