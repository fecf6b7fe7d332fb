#pragma once

#include <span>
#include <utility>
#include <vector>

#include "ops/algebra.h"
#include "ops/shapes.h"

// What types, derivatives and batching rules of several families share.
namespace brasa::ops {

inline const Type& operand(const Args& args, size_t i = 0) { return ir::type_of(args[i].get<Value>()); }
/// What one result of another shape has for its type.
inline std::vector<Type> typed(const Type& like, Shape shape) { return {{like.dtype, std::move(shape), false}}; }
/// Numbers for each dimension of an operand with one more in front, which has `first`.
inline std::vector<Expr> behind(Expr first, const std::vector<Expr>& rest) {
  std::vector<Expr> out = {first};
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

/// A node's own result, for a derivative that is written in it.
inline Value result_of(const Node& n, size_t i = 0) { return n.graph->nodes()[n.id]->out(i); }
/// What has no tangent or cotangent has zeros.
inline Value or_zeros(Value v, Value like) { return v ? v : zeros_like(like); }

/// An operand with the mapped dimension in front; one that is not mapped is repeated along it.
inline Value with_mapped(Value v, bool mapped, Expr count) { return mapped ? v : repeat_along(v, 0, count); }
/// For primitives to which dimensions in front are more of the same: every operand gets the mapped one.
inline std::vector<Value> batched_by_repeating(const Node& n, std::span<const Value> in,
                                               const std::vector<bool>& mapped, Expr count) {
  ir::Args args = n.args;
  for (size_t i = 0; i < in.size(); ++i) args[i] = with_mapped(in[i], mapped[i], count);
  return call_all(n.op->name(), args);
}

}  // namespace brasa::ops
