#pragma once

#include "ir/expr.h"

namespace brasa::ir {

/// Where every expression lives once, for as long as it has users and until its part of the table is swept. What makes one brings it
/// into normal form first (expr.cpp).
class ExprTable {
 public:
  static Expr make(ExprKind kind, int64_t value, std::vector<Expr> args, uint32_t id = 0, int64_t multiple = 1);
  /// How many expressions there are: those in use, and what no sweep has come to.
  static size_t size();
  /// Frees an expression that is in the table no more; `unused` gets the parts that nobody else uses.
  static void destroy(ExprNode* n, std::vector<ExprNode*>& unused);
};

}  // namespace brasa::ir
