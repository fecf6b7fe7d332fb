#pragma once

#include <array>
#include <optional>

#include "ops/table.h"

namespace brasa::ops {

/// {output [N, heads, length, features], logarithm of the sums} by prim::attention, where the target takes it.
std::optional<std::array<Value, 2>> attention_of_target(Value query, Value key, Value value, bool causal,
                                                        std::optional<double> scale);

/// The output alone, with a mask of bools, by prim::masked_attention.
std::optional<Value> masked_attention_of_target(Value query, Value key, Value value, Value mask,
                                                std::optional<double> scale);

/// The rows of multi_head.cpp, which belong to the family of attention's kernels.
void add_multi_head(Table& t);

}  // namespace brasa::ops
