#pragma once

#include "ops/bodies.h"

// One of two graphs, by a value.
namespace brasa::ops {

/// Adds a branch to the current Builder's graph: what `yes` makes of the operands where the predicate, one bool, holds, and else what `no`
/// makes. Only one of them runs. brasa::Error if they do not give as many values, of the same types.
std::vector<Value> cond(Value predicate, const std::vector<Value>& operands, const BodyFunction& yes,
                        const BodyFunction& no);

/// A node of prim::cond taken apart.
struct BranchNode {
  explicit BranchNode(const Args& args);
  explicit BranchNode(const Node& n) : BranchNode(n.args) {}

  Value predicate;
  std::span<const Value> operands;
  const std::vector<Expr>& sizes;  // what the bodies' symbols are
  const ir::Graph &yes, &no;
};

/// A branch without branches: both sides are computed, and each result selected. A check of a side counts where that side is taken.
std::vector<Value> selected(const BranchNode& branch);

}  // namespace brasa::ops
