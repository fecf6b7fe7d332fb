#pragma once

#include <memory>
#include <vector>

#include "ir/facts.h"
#include "transforms/vjp.h"

namespace brasa::transforms {

/// Where the backward graph takes one of its first inputs from.
struct Saved {
  enum class From : uint8_t { Input, Output, Intermediate } from;
  int index;  // of the forward graph's input, or of its output (intermediates are outputs behind the original ones)
};

/// A joint graph cut in two.
struct Partition {
  /// The original inputs -> the original outputs (checks at their place), then the saved intermediates.
  std::unique_ptr<ir::Graph> forward;
  /// The saved values, the cotangents, then one operand for each of `sizes` -> the gradients, in the joint graph's order.
  std::unique_ptr<ir::Graph> backward;
  std::vector<Saved> saved;
  /// Size symbols of the backward graph that none of its tensors shows. Each has an unread bool input of shape [symbol]
  /// (stride 0), whose operand the caller makes from the size alone.
  std::vector<ir::Expr> sizes;
};

/// Saves the set of forward values of least bytes (a minimum cut) from which the backward graph can be computed when
/// point-wise and movement operations may be done again. Inputs and outputs of the graph cost nothing to save.
/// `original_inputs` and `original_outputs` are those of the graph that `joint` was made from; `facts` gives example sizes.
Partition partition(const JointGraph& joint, size_t original_inputs, size_t original_outputs, const ir::Facts& facts);

}  // namespace brasa::transforms
