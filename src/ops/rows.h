#pragma once

namespace brasa::ops {

class Table;

// One family of operators each; families.cpp calls them in order.
void add_arithmetic(Table& t);
void add_math(Table& t);
void add_complex(Table& t);
void add_bitwise(Table& t);
void add_comparison(Table& t);
void add_activation(Table& t);
void add_activation_backward(Table& t);
void add_reduction(Table& t);
void add_moments(Table& t);
void add_norm(Table& t);
void add_scan(Table& t);
void add_softmax(Table& t);
void add_creation(Table& t);
void add_random(Table& t);
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
void add_counted(Table& t);
void add_contraction(Table& t);
void add_einsum(Table& t);
void add_convolution(Table& t);
void add_pooling(Table& t);
void add_normalization(Table& t);
void add_attention(Table& t);
void add_optimizer(Table& t);

}  // namespace brasa::ops
