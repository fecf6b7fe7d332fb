#pragma once

#include "ops/bodies.h"

// Loops in a graph: each step does what a graph says.
namespace brasa::ops {

/// What a loop goes over. `carried` are the states before the first step; each tensor of `along` gives a step one item of its first
/// dimension, of size `steps`; each step sees all of `others`.
struct LoopOperands {
  std::vector<Value> carried, along, others;
  Expr steps;
  bool reverse = false;  // from the last item to the first
};

/// One step: from the states, the items and the others (values of the loop's own graph) to the next states, of the same types, and what
/// else the step gives.
using LoopStep = std::function<std::vector<Value>(std::span<const Value> carried, std::span<const Value> items,
                                                  std::span<const Value> others)>;

/// Adds a loop to the current Builder's graph. Gives the trace of each state, [steps + 1, …]: at t what step t begins with, and behind it what
/// it ends with; with `reverse` step t begins with what is at t + 1 and ends with what is at t. Then what the steps gave, [steps, …].
std::vector<Value> scan_loop(const LoopOperands& operands, const LoopStep& step);

/// Of a trace: the state after the last step; what each step began with; what each step ended with.
Value last_state(Value trace, const LoopOperands& loop);
Value states_before(Value trace, const LoopOperands& loop);
Value states_after(Value trace, const LoopOperands& loop);

/// A node of prim::scan_loop taken apart.
struct LoopNode {
  explicit LoopNode(const Node& n);
  LoopNode(const Args& args, size_t results);

  const ir::Graph& body;
  const std::vector<Expr>& sizes;  // what the body's symbols are
  std::span<const Value> operands;
  size_t carried, along;  // of the operands, in this order
  size_t given = 0;       // results of a step that are no states
  Expr steps;
  bool reverse;

  size_t others() const { return operands.size() - carried - along; }
  /// A size in the body as one of the graph that the node is in.
  Expr outside(Expr size) const { return ops::outside(size, sizes); }
  /// The body with the sizes of that graph.
  std::unique_ptr<ir::Graph> body_outside() const { return ops::outside(body, sizes); }
  LoopOperands loop() const;
};

/// A loop whose number of steps is known as its steps one after the other.
std::vector<Value> unrolled(const LoopNode& loop);

}  // namespace brasa::ops
