#pragma once

#include <memory>
#include <unordered_set>

#include "compiler/machine.h"
#include "ir/facts.h"
#include "ir/graph.h"

namespace brasa::compiler {

struct Prepared {
  std::unique_ptr<ir::Graph> graph;
  /// Values that must go to memory: packed operands of contractions, and what is read in a better order from memory.
  std::unordered_set<ir::Value> in_memory;
};

/// Brings hard primitives into the forms that lowering knows:
///   - contractions become [b,] m, k · [b,] k, n; with one row or column a reduction; an operand whose last dimension does not
///     lie along vectors is packed into panels first,
///   - convolutions become contractions over sliding windows,
///   - reductions with too little parallel work are split in two,
///   - reduced floats are accumulated in float32.
Prepared prepare(const ir::Graph& graph, ir::Facts& facts, const Machine& machine);

/// Register tile of a contraction: rows, and vectors a row.
struct ContractionTile {
  int rows, vectors, lanes;
  int columns() const { return vectors * lanes; }
};
ContractionTile contraction_tile(ir::Expr m, ir::Expr n, DType dtype, const Machine& machine);

/// The dtype in which sums of this dtype accumulate.
DType accumulator_of(DType t);

}  // namespace brasa::compiler
