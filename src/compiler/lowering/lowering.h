#pragma once

#include "compiler/fusion/places.h"
#include "compiler/lowering/expressions.h"
#include "compiler/lowering/lower.h"

// What the lowerings of the sorts of groups share.
namespace brasa::compiler {

/// A loop graph with a buffer for each tensor of the group.
class Lowering {
 public:
  explicit Lowering(const Group& group);

  LoopBuilder& b() { return b_; }
  Expressions& expressions() { return expressions_; }
  /// Absent for an input that comes by value.
  ir::Value input_buffer(size_t i) const { return buffers_[i]; }
  ir::Value output_buffer(size_t i) const { return buffers_[group_.inputs.size() + i]; }
  /// Where element `index` of output i lies.
  ir::Expr output_place(size_t i, const Index& index) const;
  /// The kernel, once its stores are made.
  Lowered finish(const Schedule& schedule);

 private:
  const Group& group_;
  std::unique_ptr<ir::Graph> graph_;
  LoopBuilder b_;
  std::vector<ir::Value> buffers_;
  std::vector<std::vector<ir::Value>> numbers_;  // by input: the elements of one that comes by value
  Expressions expressions_;
};

/// Pieces of an axis: the piece number ranges over `count`, a place in the piece over `inside`, which depends on `piece`.
struct Pieces {
  ir::Expr count;
  ir::Expr size, extent;
  ir::Expr inside(ir::Expr piece) const;
};
Pieces pieces_of(ir::Expr extent, ir::Expr size);

}  // namespace brasa::compiler
