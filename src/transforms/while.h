#pragma once

#include <span>
#include <vector>

#include "ops/table.h"

// What rows of other primitives say of themselves, for a loop that goes on as long as a value says so.
namespace brasa::transforms {

/// As ops::Vjp: brasa::Error, as nothing says how many steps' values would have to be kept.
std::vector<ir::Value> while_vjp(const ir::Node& n, std::span<const ir::Value> cts, const std::vector<bool>& needs);
/// As ops::Jvp: the states and their tangents together.
std::vector<ir::Value> while_jvp(const ir::Node& n, std::span<const ir::Value> tangents);
/// As ops::Batch: a loop that goes on until all calls are done; the states of those that are done stay.
std::vector<ir::Value> batched_while(const ir::Node& n, std::span<const ir::Value> operands,
                                     const std::vector<bool>& mapped, ir::Expr count);

}  // namespace brasa::transforms
