#pragma once

#include <memory>
#include <vector>

#include "ir/facts.h"
#include "transforms/cut.h"

namespace brasa::transforms {

/// Where the backward graph takes one of its first inputs from.
struct Saved {
  enum class From : uint8_t { Input, Output, Intermediate } from;
  int index;  // of the forward graph's input, or of its output (intermediates are outputs behind the original ones)
};

/// Where a joint graph is cut in two.
struct Partition {
  /// The original inputs -> the original outputs (checks at their place), then the saved intermediates.
  std::unique_ptr<ir::Graph> forward;
  std::vector<Saved> saved;
  std::vector<ir::Value> values;  // of the joint graph, in the order of `saved`
};

/// Saves the values of the least cut (cut.h). `original_inputs` and `original_outputs` are those of the graph that `joint` was made from;
/// `facts` gives example sizes.
Partition partition(const ir::Graph& joint, size_t original_inputs, size_t original_outputs, const ir::Facts& facts,
                    const Keeping& keeping = {});

/// The part of a joint graph behind a cut.
struct BackwardGraph {
  /// The operands below in their order -> the gradients.
  std::unique_ptr<ir::Graph> graph;
  std::vector<size_t> saved;   // that it reads, by position
  std::vector<size_t> inputs;  // of the joint graph, likewise: original ones, then cotangents
  /// Size symbols that none of its tensors shows. Each has an unread bool input of shape [symbol]
  /// (stride 0), whose operand the caller makes from the size alone.
  std::vector<ir::Expr> sizes;
};

/// Makes these gradients, values of the joint graph, of what was saved, of cotangents and of original inputs that were not.
BackwardGraph backward_graph(const ir::Graph& joint, const std::vector<ir::Value>& saved,
                             const std::vector<ir::Value>& gradients);

}  // namespace brasa::transforms
