#pragma once

#include <vector>

#include "ir/graph.h"

// What each primitive does to indices: the algebra that fusion and lowering share.
namespace brasa::compiler {

using Index = std::vector<ir::Expr>;

enum class Prim : uint8_t {
  Input,
  Full,
  Iota,
  SizeValue,
  Pointwise,
  Broadcast,
  Reshape,
  Transpose,
  Slice,
  Reverse,
  Window,
  Pad,
  Concat,
  Gather,
  Scatter,
  Reduce,
  ArgReduce,
  Scan,
  Sort,
  Dot,
  Convolution,
};

/// brasa::Error for one that the compiler has no lowering for.
Prim prim_of(const ir::Node* n);
inline Prim prim_of(ir::Value v) { return prim_of(v.node); }
/// A movement primitive that reads one element of its one operand for each of the result, at a computed index.
inline bool is_view(Prim p) { return p >= Prim::Broadcast && p <= Prim::Window; }
/// A value without memory of its own: no data, or an index alone decides.
inline bool is_leaf(Prim p) { return p == Prim::Full || p == Prim::Iota || p == Prim::SizeValue; }

ir::Expr linearise(const Index& index, const ir::Shape& shape);
Index delinearise(ir::Expr linear, const ir::Shape& shape);
/// The index in a tensor of shape `from` of the element that is at `index` in shape `to`, both row-major over the same elements.
Index reshaped(const Index& index, const ir::Shape& to, const ir::Shape& from);
/// Where a view (is_view) reads its operand for its result at `index`.
Index view_index(const ir::Node* n, const Index& index);

std::vector<int64_t> int_args(const ir::Node* n, size_t arg);
/// Dimensions of `rank` that are not in `dims`, in order.
std::vector<int64_t> other_dims(const std::vector<int64_t>& dims, int64_t rank);

/// Coefficient of the symbol in an expression that is linear in it; nothing if it is not linear in it.
std::optional<ir::Expr> coefficient(ir::Expr e, ir::Expr symbol);

}  // namespace brasa::compiler
