#pragma once

#include <vector>

#include "ops/index.h"

// What each primitive does to indices, as fusion and lowering ask it.
namespace brasa::compiler {

using ops::delinearise;
using ops::Index;
using ops::linearise;
using ops::reshaped;
using Prim = ops::Kind;
using ops::is_leaf;
using ops::is_view;

/// What a node of a graph of primitives does; brasa::InternalError for a composed row.
Prim prim_of(const ir::Node* n);
inline Prim prim_of(ir::Value v) { return prim_of(v.node); }

/// Where a view (is_view) reads its operand for its result at `index`.
Index view_index(const ir::Node* n, const Index& index);

std::vector<int64_t> int_args(const ir::Node* n, size_t arg);
/// Dimensions of `rank` that are not in `dims`, in order.
std::vector<int64_t> other_dims(const std::vector<int64_t>& dims, int64_t rank);

/// Coefficient of the symbol in an expression that is linear in it; nothing if it is not linear in it.
std::optional<ir::Expr> coefficient(ir::Expr e, ir::Expr symbol);

}  // namespace brasa::compiler
