#pragma once

#include "ir/expr.h"

namespace brasa::ir {

/// Where every expression lives once. What makes one brings it into normal form first (expr.cpp).
class ExprTable {
 public:
  static Expr make(ExprKind kind, int64_t value, std::vector<Expr> args, uint32_t id = 0, int64_t multiple = 1);
  static const ExprNode* number(int64_t value);
};

}  // namespace brasa::ir
