#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

// What the rules of control flow do with bodies, in the current Builder's graph. The sizes of the bodies are those of that graph.
namespace brasa::transforms {

/// The operands, and values for the inputs behind them, which only show sizes.
std::vector<ir::Value> all_inputs(const ir::Graph& body, std::span<const ir::Value> operands);

/// A body's results, and the tangents of those: absent where they are zero, and at results without.
struct Pushed {
  std::vector<ir::Value> results, tangents;
};
/// `tangents` are those of the operands that `moves` marks.
Pushed pushed(const ir::Graph& body, std::span<const ir::Value> operands, std::vector<bool> moves,
              std::span<const ir::Value> tangents);

}  // namespace brasa::transforms
