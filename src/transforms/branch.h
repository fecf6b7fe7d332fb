#pragma once

#include <span>
#include <vector>

#include "ops/table.h"

// What rows of other primitives say of themselves follows for a branch from its bodies.
namespace brasa::transforms {

/// As ops::Vjp: a branch whose sides are the derivatives, and compute again what they need of the forward pass.
std::vector<ir::Value> branch_vjp(const ir::Node& n, std::span<const ir::Value> cts, const std::vector<bool>& needs);
/// As ops::Jvp: another branch, of the tangents.
std::vector<ir::Value> branch_jvp(const ir::Node& n, std::span<const ir::Value> tangents);
/// As ops::Batch. Where the calls differ in the predicate both sides are computed, and each result is selected.
std::vector<ir::Value> batched_branch(const ir::Node& n, std::span<const ir::Value> operands,
                                      const std::vector<bool>& mapped, ir::Expr count);

}  // namespace brasa::transforms
