#include "compiler/indexing.h"

#include <algorithm>

#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::Node;

Prim prim_of(const Node* n) {
  Prim p = ops::kind_of(*n);
  BRASA_ASSERT(p != Prim::None, n->op->name(), " is no primitive");
  return p;
}

Index view_index(const Node* n, const Index& index) { return ops::row_of(*n).index_rule(*n, index); }

std::vector<int64_t> int_args(const Node* n, size_t arg) {
  std::vector<int64_t> out;
  for (Expr e : n->arg<std::vector<Expr>>(arg)) out.push_back(e.constant());
  return out;
}

std::vector<int64_t> other_dims(const std::vector<int64_t>& dims, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t d = 0; d < rank; ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) out.push_back(d);
  return out;
}

std::optional<Expr> coefficient(Expr e, Expr symbol) {
  if (e == symbol) return Expr(1);
  switch (e->kind) {
    case ir::ExprKind::Add: {
      Expr sum(0);
      for (Expr a : e->args) {
        auto c = coefficient(a, symbol);
        if (!c) return std::nullopt;
        sum = sum + *c;
      }
      return sum;
    }
    case ir::ExprKind::Mul: {
      int count = 0;
      Expr rest(e->value);
      for (Expr a : e->args) {
        if (a == symbol)
          ++count;
        else if (contains_symbol(a, symbol))
          return std::nullopt;
        else
          rest = rest * a;
      }
      if (count == 0) return Expr(0);
      return count == 1 ? std::optional(rest) : std::nullopt;
    }
    default:
      if (contains_symbol(e, symbol)) return std::nullopt;
      return Expr(0);
  }
}

}  // namespace brasa::compiler
