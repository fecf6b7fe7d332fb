#include "compiler/fusion/filled_parts.h"

#include <algorithm>

#include "compiler/fusion/indexing.h"
#include "ops/combiner.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Value;

namespace {

bool all_zero(const std::vector<Expr>& list, size_t but = SIZE_MAX) {
  for (size_t d = 0; d < list.size(); ++d)
    if (d != but && !list[d].is(0)) return false;
  return true;
}

// Whether the value changes nothing where this combiner meets it.
bool is_identity(Value v, const std::string& combiner) {
  if (prim_of(v) != Prim::Full) return false;
  DType t = type_of(v).dtype;
  ops::Number literal = v.node->args[0], wanted = ops::identity(combiner, t);
  if (!literal.is_known()) return false;
  return is_floating(t) ? literal.as_double() == wanted.as_double() : literal.as_int() == wanted.as_int();
}

// The size before it was filled up of what this sum is over.
std::optional<Expr> filled(const Node* sum, size_t dim) {
  Value parts = sum->arg<Value>(0);
  if (dim == 0 || prim_of(parts) != Prim::Reshape || int_args(sum, 1) != std::vector{static_cast<int64_t>(dim)})
    return std::nullopt;
  Value pad = parts.node->arg<Value>(0);
  if (prim_of(pad) != Prim::Pad || !is_identity(pad.node->arg<Value>(1), sum->arg<std::string>(2))) return std::nullopt;
  const auto &low = pad.node->arg<std::vector<Expr>>(2), &high = pad.node->arg<std::vector<Expr>>(3),
             &gaps = pad.node->arg<std::vector<Expr>>(4);
  if (!all_zero(low) || !all_zero(high, dim - 1) || !all_zero(gaps)) return std::nullopt;
  // The reshape does nothing but cut this dimension.
  ir::Shape cut = type_of(parts).shape, whole = type_of(pad).shape;
  if (!(cut[dim - 1] * cut[dim] == whole[dim - 1])) return std::nullopt;
  cut.erase(cut.begin() + static_cast<ptrdiff_t>(dim));
  cut[dim - 1] = whole[dim - 1];
  return cut == whole ? std::optional(type_of(pad.node->arg<Value>(0)).shape[dim - 1]) : std::nullopt;
}

}  // namespace

std::optional<Expr> filled_parts(const Group& g, size_t dim) {
  std::optional<Expr> out;
  for (const Node* n : g.graph->nodes()) {
    if (prim_of(n) == Prim::ArgReduce) return std::nullopt;
    if (prim_of(n) != Prim::Reduce) continue;
    std::optional<Expr> own = filled(n, dim);
    if (!own || (out && !(*out == *own)) || type_of(n->arg<Value>(0)).shape != g.domain.dims) return std::nullopt;
    out = own;
  }
  for (const ir::Output& o : g.graph->outputs())
    if (prim_of(o.value) != Prim::Reduce && type_of(o.value).numel() == g.domain.numel()) return std::nullopt;
  return out;
}

}  // namespace brasa::compiler
