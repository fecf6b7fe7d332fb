#pragma once

#include <array>
#include <optional>

#include "ops/table.h"

namespace brasa::ops {

/// {output [N, heads, length, features], logarithm of the sums} by prim::attention, where the target takes it.
std::optional<std::array<Value, 2>> attention_of_target(Value query, Value key, Value value, bool causal,
                                                        std::optional<double> scale);

}  // namespace brasa::ops
