#pragma once

#include "compiler/schedules/machine.h"
#include "ir/graph.h"

namespace brasa::compiler {

/// Register tile of a contraction: rows, and vectors a row.
struct ContractionTile {
  int rows, vectors, lanes;
  int columns() const { return vectors * lanes; }
};
ContractionTile contraction_tile(ir::Expr m, ir::Expr n, DType dtype, const Machine& machine);

}  // namespace brasa::compiler
