#pragma once

#include "ir/expr.h"

namespace brasa::ir {

/// Where every expression lives once. What makes one brings it into normal form first (expr.cpp).
class ExprTable {
 public:
  static Expr make(ExprKind kind, int64_t value, std::vector<Expr> args, uint32_t id = 0, int64_t multiple = 1);
  static const ExprNode* number(int64_t value);
};

/// Rounds towards minus infinity.
inline int64_t floor_div(int64_t a, int64_t b) {
  int64_t q = a / b;
  return (a % b != 0 && (a < 0) != (b < 0)) ? q - 1 : q;
}

}  // namespace brasa::ir
