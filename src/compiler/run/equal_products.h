#pragma once

#include <functional>
#include <span>
#include <vector>

#include "compiler/run/plan.h"

namespace brasa::compiler {

/// Whether one call of its library may compute several such groups.
bool is_repeatable(const Group& g);

/// Repeatable groups of the plan's that compute the same of other values, in sets of two and more. `stands`: whether a group's result and its
/// operands may lie wherever these products want them.
std::vector<std::vector<size_t>> equal_products(const std::vector<Group>& groups,
                                                const std::function<bool(size_t)>& stands);

/// How many bytes the tensors of step `next` lie behind those of `step`, which computes the same; empty where not all of them lie in the arena.
std::vector<int64_t> apart(const Plan& p, size_t step, size_t next);

/// How many steps from this one on are one call: repeatable ones that compute the same, of tensors at equal distances.
size_t calls_in_one(const Plan& p, size_t step, const std::function<bool(size_t next)>& fits);

}  // namespace brasa::compiler
