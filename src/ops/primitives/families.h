#pragma once

#include "ops/table.h"

namespace brasa::ops {

void add_pointwise_primitives(Table& t);
void add_creation_primitives(Table& t);
void add_movement_primitives(Table& t);
void add_window(Table& t);  // one of them
void add_indexing_primitives(Table& t);
void add_reduction_primitives(Table& t);
void add_contraction_primitives(Table& t);
void add_factorisation_primitives(Table& t);
void add_fourier_primitives(Table& t);
void add_sparse_primitives(Table& t);
void add_parts_primitives(Table& t);
void add_loop_primitives(Table& t);
void add_branch_primitives(Table& t);
void add_while_primitives(Table& t);

}  // namespace brasa::ops
