#pragma once

#include "compiler/passes/passes.h"
#include "ir/graph.h"

namespace brasa::compiler {

/// Register tile of a contraction: rows, and vectors a row.
struct ContractionTile {
  int rows, vectors, lanes;
  int columns() const { return vectors * lanes; }
};
ContractionTile contraction_tile(ir::Expr m, ir::Expr n, DType dtype, const Machine& machine);
/// So many vectors are what its whole tiles leave of the columns, if that is less than a tile; else 0.
int rest_of(const ContractionTile& tile, int64_t columns);
/// The same; facts tell few columns of an unknown number apart, which fill fewer vectors, or one more. The width of the panels tells schedules.
ContractionTile contraction_tile(ir::Expr m, ir::Expr n, DType dtype, const PassContext& context);

/// Fewer rows do not pay for packing the columns.
constexpr int64_t kPackingRows = 16;

/// Such a tile of the processor's own (Machine::tiles): one or two across and along.
constexpr int kMatrixTile = 16;
ContractionTile matrix_tile(ir::Expr m, ir::Expr n);

/// Whether products may be added up in pairs (Machine::pairs), which rounds in an order of its own.
bool adds_pairs(const Machine& machine);
/// How many neighbours along k one step of a product adds up whose operands lie in words, this one among them, widened or not.
int neighbours_of_a_step(ir::Value operand, const Machine& machine);

/// How many rows or columns of a product an operand gives: elements along the dimensions that are neither summed nor of the batch.
ir::Expr free_size(ir::Value operand, std::vector<int64_t> summed, const std::vector<int64_t>& batch);

/// Whether a size is at least so large: of a symbolic one a fact, which the variant's guard checks.
bool at_least(ir::Expr e, int64_t least, const PassContext& context);

}  // namespace brasa::compiler
