#pragma once

#include <initializer_list>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "ops/scalar_op.h"

namespace brasa::compiler {

/// What `loop::tile_product` takes (ops.h).
struct TileProduct {
  ir::Value a, b;
  ir::Expr a_at, a_row, a_step, b_at, steps;
  int64_t rows, columns;
  std::string kind;
};

/// Adds loop-level nodes with their types. Symbols v<id> find their `loop::bind` by themselves.
class LoopBuilder {
 public:
  explicit LoopBuilder(ir::Graph& graph) : graph_(graph) {}
  ir::Graph& graph() { return graph_; }
  /// Keeps new symbols apart from those of a graph that is being copied into this one.
  void avoid_symbols_of(const ir::Graph& other);

  /// A kernel argument of `elements` elements.
  ir::Value buffer(DType dtype, ir::Expr elements, std::string name = "");
  /// A kernel argument that is a number itself. All of them come after the buffers.
  ir::Value number(DType dtype);
  /// Declares a loop with the next free id.
  ir::Expr loop(std::string_view kind, ir::Expr extent, int width = 1, int unroll = 1);
  /// Declares a loop for a range that exists.
  void declare(ir::Expr range, std::string_view kind, int width = 1, int unroll = 1);
  /// A symbol for `place` that is known to be less than `extent`, which `place` does not tell: it is so everywhere, or where `mask` holds.
  /// Nodes get `place` itself.
  ir::Expr bounded(ir::Expr place, ir::Expr extent, ir::Value mask = {});
  /// Whether lanes or threads beside each other may have values of their own.
  bool varies_by_lane(ir::Expr e) const;
  /// The expression with nothing known of its symbols but what holds without a mask, too.
  ir::Expr without_mask(ir::Expr e) const;

  ir::Value index(ir::Expr e);
  ir::Expr bind(ir::Value value, ir::Expr extent, const std::vector<ir::Expr>& ranges = {});
  /// The place, which an update reads and writes in each iteration of these loops: it is bound anew where it does not follow from them.
  ir::Expr in_each(ir::Expr place, const std::vector<ir::Expr>& ranges, ir::Expr extent);
  ir::Value load(ir::Value buffer, ir::Expr index, ir::Value mask = {});
  void store(ir::Value buffer, ir::Expr index, ir::Value value, ir::Value mask = {}, std::string_view combine = "");
  void prefetch(ir::Value buffer, ir::Expr index, const std::vector<ir::Expr>& ranges = {}, int level = 1);
  ir::Value reduce(ir::Value item, const std::vector<ir::Expr>& ranges, std::string_view combiner);
  /// {value, index} of argmax or argmin.
  std::vector<ir::Value> arg_reduce(ir::Value item, ir::Value index, const std::vector<ir::Expr>& ranges,
                                    std::string_view combiner);
  /// What all iterations of `range` up to this one combine to.
  ir::Value scan(ir::Value item, ir::Expr range, std::string_view combiner, ir::Value factor = {});
  ir::Value stage(ir::Value value, const std::vector<ir::Expr>& ranges, std::string_view space = "local");
  ir::Value unlikely(ir::Value condition, ir::Value rare, ir::Value usual);
  ir::Value pair_product(ir::Value a, ir::Value b, DType sum);
  ir::Value quad_product(ir::Value a, ir::Value b);
  ir::Value scale(ir::Value x, ir::Value n);
  ir::Value tile_product(const TileProduct& p);
  ir::Value table(const std::vector<int64_t>& bits, DType dtype);
  void unwritten(std::vector<ir::Value> buffers);

  ir::Value op(ops::ScalarOp op, std::initializer_list<ir::Value> operands);
  /// By its name.
  ir::Value op(std::string_view name, std::initializer_list<ir::Value> operands);
  ir::Value constant(ir::Arg value, DType dtype);
  ir::Value convert(ir::Value x, DType dtype);
  ir::Value bitcast(ir::Value x, DType dtype);

 private:
  std::vector<ir::Value> values_of(ir::Expr e) const;
  ir::Expr spelled_out(ir::Expr e) const;
  ir::Graph& graph_;
  std::unordered_map<ir::Expr, ir::Expr> bounded_, bounded_by_mask_;
  std::unordered_map<ir::Expr, ir::Value> binds_;
  std::unordered_set<ir::Expr> lanes_;  // ranges of loops that run side by side
  uint32_t next_range_ = 0, next_value_ = 0;
};

}  // namespace brasa::compiler
