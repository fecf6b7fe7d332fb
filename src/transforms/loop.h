#pragma once

#include <span>
#include <vector>

#include "ops/table.h"

// What rows of other primitives say of themselves follows for a loop from its body.
namespace brasa::transforms {

/// As ops::Vjp. The steps go the other way, and only what hangs on the cotangents of states is a loop again: what can be computed
/// for all steps at once comes before it or behind it, sums over steps too.
std::vector<ir::Value> loop_vjp(const ir::Node& n, std::span<const ir::Value> cts, const std::vector<bool>& needs);
/// As ops::Jvp: the states and their tangents together.
std::vector<ir::Value> loop_jvp(const ir::Node& n, std::span<const ir::Value> tangents);
/// As ops::Batch: each step is one of all calls.
std::vector<ir::Value> batched_loop(const ir::Node& n, std::span<const ir::Value> operands,
                                    const std::vector<bool>& mapped, ir::Expr count);

}  // namespace brasa::transforms
