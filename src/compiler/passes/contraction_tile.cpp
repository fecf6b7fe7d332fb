#include <algorithm>
#include <cmath>

#include "compiler/lowering/expressions.h"
#include "compiler/passes/contraction.h"
#include "compiler/passes/words.h"

namespace brasa::compiler {

ContractionTile contraction_tile(Expr m, Expr n, DType dtype, const Machine& machine) {
  int lanes = std::max(1, machine.lanes(size_of(accumulator_of(dtype))));
  int registers = machine.vector_registers;
  ContractionTile best{1, 1, lanes};
  double best_cost = 1e300;
  // More rows than the first cache has lines for one place would push each other out where they lie a power of two apart.
  constexpr int kMostRows = 8;
  constexpr int64_t kLayer = 64;
  for (int v = 1; v <= 6; ++v)
    for (int r = 1; r <= kMostRows; ++r) {
      if (r * v + v + 1 > registers) continue;
      auto part = [](int64_t size, double of) { return static_cast<double>(std::max<int64_t>(size, 1)) / of; };
      // For each k: r * v multiply-adds, v + r loads (two of each a cycle), at least 4 cycles latency for each accumulator.
      auto cycles = [&](int v) { return std::max({r * v / 2.0, (v + r) / 2.0, 4.0}) + 0.5; };
      // A tile that a size does not fill wastes work. Of an unknown one a long one is assumed, and columns are those of some layer.
      const ContractionTile tile{r, v, lanes};
      int64_t columns = n.is_constant() ? n.constant() : kLayer;
      int rest = n.is_constant() ? rest_of(tile, columns) : 0;
      int64_t panels = (columns + tile.columns() - 1) / tile.columns() - (rest > 0);
      double cost = (static_cast<double>(panels) * cycles(v) + (rest ? cycles(rest) : 0)) / (r * part(columns, lanes));
      if (m.is_constant()) cost *= std::ceil(part(m.constant(), r)) / part(m.constant(), r);
      if (cost < best_cost * 0.999) {
        best_cost = cost;
        best = {r, v, lanes};
      }
    }
  return best;
}

int rest_of(const ContractionTile& tile, int64_t columns) {
  auto vectors = static_cast<int>((columns % tile.columns() + tile.lanes - 1) / tile.lanes);
  return columns > tile.columns() && vectors < tile.vectors ? vectors : 0;
}

ContractionTile contraction_tile(Expr m, Expr n, DType dtype, const PassContext& context) {
  ContractionTile tile = contraction_tile(m, n, dtype, context.machine);
  // A vector more than a panel has would be a panel of its own.
  for (int v = tile.vectors + 1; v > 0 && !n.is_constant() && !at_least(n, v * tile.lanes + 1, context); --v)
    tile = contraction_tile(m, v * tile.lanes, dtype, context.machine);
  return tile;
}

bool adds_pairs(const Machine& machine) { return machine.pairs && !machine.one_order; }

ContractionTile matrix_tile(Expr m, Expr n) {
  auto tiles = [](Expr size) { return size.is_constant() && size.constant() <= kMatrixTile ? 1 : 2; };
  return {tiles(m) * kMatrixTile, tiles(n), kMatrixTile};
}

int neighbours_of_a_step(Value operand, const Machine& machine) {
  DType t = type_of(unwidened(operand)).dtype;
  bool adds = t == DType::BFloat16 ? adds_pairs(machine)
              : t == DType::Int16  ? machine.integer_pairs
                                   : size_of(t) == 1 && machine.quads;
  return adds ? static_cast<int>(in_a_word(t)) : 1;
}

bool at_least(Expr e, int64_t least, const PassContext& context) {
  Expr low = ir::min(e, Expr(least));
  if (low.is_constant()) return low.is(least);
  return !context.size_classes || context.facts.equal(low, Expr(least));
}

}  // namespace brasa::compiler
