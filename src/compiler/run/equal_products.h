#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/run/block.h"
#include "compiler/run/plan.h"

namespace brasa::compiler {

/// By group: a number that it shares with those whose kernels are the same, or 0 where there are none.
std::vector<size_t> equal_kernels(const std::vector<Group>& groups);

/// Whether one call of its library may compute several such groups.
bool is_repeatable(const Group& g);

/// Repeatable groups of the plan's that compute the same of other values, in sets of two and more. `stands`: whether a group's result and its
/// operands may lie wherever these products want them.
std::vector<std::vector<size_t>> equal_products(const std::vector<Group>& groups,
                                                const std::function<bool(size_t)>& stands);

/// Tensors of one size that lie one behind the other in a range of a block, from when the first one is made until the last one is read.
class TensorRows {
 public:
  void add(const std::vector<ir::Value>& tensors);
  /// Whether it is one of them, which is made now.
  bool take(ir::Value v, Block& block);
  /// Does nothing for other values.
  void give_back(ir::Value v, Block& block);
  /// With the offsets, when the block has been placed.
  void each(const std::function<void(ir::Value, int64_t offset)>& f, const Block& block) const;

 private:
  struct Row {
    int64_t bytes;  // of each
    size_t left;    // that are still needed
    std::optional<size_t> range;
  };
  std::vector<Row> rows_;
  std::unordered_map<ir::Value, std::pair<size_t, size_t>> of_;  // its row, and its place there
};

/// How many bytes the tensors of step `next` lie behind those of `step`, which computes the same; empty where not all of them lie in the arena.
std::vector<int64_t> apart(const Plan& p, size_t step, size_t next);

/// How many steps from this one on are one call: repeatable ones that compute the same, of tensors at equal distances.
size_t calls_in_one(const Plan& p, size_t step, const std::function<bool(size_t next)>& fits);

}  // namespace brasa::compiler
