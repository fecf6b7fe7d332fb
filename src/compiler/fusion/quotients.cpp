#include "compiler/fusion/quotients.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "compiler/fusion/indexing.h"
#include "compiler/fusion/places.h"

namespace brasa::compiler {

namespace {

// What the range is divided by within an expression, if that divides its extent into whole pieces.
std::optional<Expr> divisor_of(Expr e, Expr range, Expr extent, std::unordered_set<const ir::ExprNode*>& seen) {
  if (!seen.insert(e.node()).second || !contains_symbol(e, range)) return std::nullopt;
  if ((e->kind == ir::ExprKind::FloorDiv || e->kind == ir::ExprKind::Mod) && e->args[0] == range) {
    Expr by = e->args[1];
    if (!by.is(1) && !(by == extent) && floordiv(extent, by) * by == extent) return by;
  }
  for (Expr part : e->args)
    if (std::optional<Expr> by = divisor_of(part, range, extent, seen)) return by;
  return std::nullopt;
}

std::optional<Expr> divisor_of(const Places& places, size_t dim, Expr extent) {
  std::unordered_set<const ir::ExprNode*> seen;
  for (Expr e : places.exprs)
    if (std::optional<Expr> by = divisor_of(e, places.ranges[dim], extent, seen)) return by;
  return std::nullopt;
}

}  // namespace

Domain without_quotients(const Group& group) {
  const auto& nodes = group.graph->nodes();
  bool reshapes = std::any_of(nodes.begin(), nodes.end(), [](const Node* n) { return prim_of(n) == Prim::Reshape; });
  if (group.kind != GroupKind::Loops || group.domain.folds() || !group.domain.summed.empty() || !reshapes)
    return group.domain;
  const Places places = places_of(group);
  ir::Shape dims = group.domain.dims, out;
  for (size_t d = 0; d < dims.size(); ++d) {
    std::optional<Expr> by = d + 1 < dims.size() ? divisor_of(places, d, dims[d]) : std::nullopt;
    if (by) out.push_back(floordiv(dims[d], *by));
    out.push_back(by ? *by : dims[d]);
  }
  return domain_of(out);
}

}  // namespace brasa::compiler
