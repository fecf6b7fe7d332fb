#pragma once

#include "ops/bodies.h"

// A loop that goes on as long as a value says so.
namespace brasa::ops {

/// Adds a loop to the current Builder's graph: as long as `go_on` of the states and the others, one bool, holds, `step` of the same makes the next
/// states, of the same types. Gives the states that it ends with.
std::vector<Value> while_loop(const std::vector<Value>& carried, const std::vector<Value>& others,
                              const BodyFunction& go_on, const BodyFunction& step);

/// A node of prim::while_loop taken apart.
struct WhileNode {
  explicit WhileNode(const Args& args);
  explicit WhileNode(const Node& n) : WhileNode(n.args) {}

  std::span<const Value> operands;
  const std::vector<Expr>& sizes;  // what the bodies' symbols are
  size_t carried;                  // of the operands: the first ones
  const ir::Graph &go_on, &step;
};

}  // namespace brasa::ops
