#pragma once

namespace brasa::ops {

class Table;

// One family of operators each; families.cpp calls them in order.
void add_arithmetic(Table& t);
void add_extrema(Table& t);
void add_powers(Table& t);
void add_math(Table& t);
void add_number_classes(Table& t);
void add_complex(Table& t);
void add_bitwise(Table& t);
void add_comparison(Table& t);
void add_activation(Table& t);
void add_activation_backward(Table& t);
void add_modified_bessel(Table& t);
void add_bessel(Table& t);
void add_airy(Table& t);
void add_normal_functions(Table& t);
void add_zeta(Table& t);
void add_chebyshev(Table& t);
void add_orthogonal(Table& t);
void add_incomplete_gamma(Table& t);
void add_integers(Table& t);
void add_membership(Table& t);
void add_histogram(Table& t);
void add_quantile(Table& t);
void add_statistics(Table& t);
void add_differences(Table& t);
void add_combinatorics(Table& t);
void add_windows(Table& t);
void add_strided(Table& t);
void add_questions(Table& t);
void add_reduction(Table& t);
void add_moments(Table& t);
void add_norm(Table& t);
void add_scan(Table& t);
void add_softmax(Table& t);
void add_creation(Table& t);
void add_random(Table& t);
void add_random_choices(Table& t);
void add_distributions(Table& t);
void add_distribution_gradients(Table& t);
void add_random_key(Table& t);
void add_loss(Table& t);
void add_nll(Table& t);
void add_view(Table& t);
void add_slicing(Table& t);
void add_padding(Table& t);
void add_fold(Table& t);
void add_distance(Table& t);
void add_movement(Table& t);
void add_indexing(Table& t);
void add_scatter(Table& t);
void add_view_scatter(Table& t);
void add_counted(Table& t);
void add_contraction(Table& t);
void add_products_of_several(Table& t);
void add_einsum(Table& t);
void add_convolution(Table& t);
void add_pooling(Table& t);
void add_normalization(Table& t);
void add_channel_norms(Table& t);
void add_attention(Table& t);
void add_linalg(Table& t);
void add_linalg_solve(Table& t);
void add_linalg_spectral(Table& t);
void add_linalg_norms(Table& t);
void add_optimizer(Table& t);
void add_upsample(Table& t);
void add_grid_sample(Table& t);
void add_fractional_pool(Table& t);
void add_rnn(Table& t);
void add_packed_sequence(Table& t);
void add_embedding_bag(Table& t);
void add_segment(Table& t);
void add_margin_loss(Table& t);
void add_ctc_loss(Table& t);
void add_quantization(Table& t);
void add_fake_quantization(Table& t);
void add_attention_kernels(Table& t);
void add_fused(Table& t);

}  // namespace brasa::ops
