#include "compiler/run/size_program.h"

#include <algorithm>

#include "support/checked.h"
#include "support/error.h"

namespace brasa::compiler {

using ir::Expr;
using ir::ExprKind;

namespace {
constexpr size_t kDepth = 64;
}

SizeProgram::SizeProgram(Expr e) {
  if (e.is_constant())
    constant_ = e.constant();
  else
    emit(e);
  // Each instruction adds one value at most.
  size_t depth = 0, most = 0;
  for (const Instruction& i : code_) most = std::max(most, i.op <= Symbol ? ++depth : --depth);
  BRASA_ASSERT(most <= kDepth, "a size is computed from too many parts: ", e);
}

void SizeProgram::emit(Expr e) {
  auto fold = [&](Op op, bool with_value) {
    bool first = true;
    if (with_value) {
      code_.push_back({Push, e->value});
      first = false;
    }
    for (Expr a : e->args) {
      emit(a);
      if (!first) code_.push_back({op, 0});
      first = false;
    }
  };
  switch (e->kind) {
    case ExprKind::Constant: code_.push_back({Push, e->value}); return;
    case ExprKind::Size: code_.push_back({Symbol, e->id}); return;
    case ExprKind::Mul: return fold(Mul, e->value != 1);
    case ExprKind::Add: return fold(Add, e->value != 0);
    case ExprKind::FloorDiv: return fold(Div, false);
    case ExprKind::Mod: return fold(Mod, false);
    case ExprKind::Min: return fold(Min, false);
    case ExprKind::Max: return fold(Max, false);
    default: fail_internal(str("a size depends on the loop index in ", e));
  }
}

int64_t SizeProgram::evaluate(const int64_t* symbols) const {
  int64_t stack[kDepth];
  size_t top = 0;
  for (const Instruction& i : code_) {
    if (i.op <= Symbol) {
      stack[top++] = i.op == Push ? i.value : symbols[i.value];
      continue;
    }
    int64_t b = stack[--top];
    int64_t& a = stack[top - 1];
    switch (i.op) {
      case Add: a = checked_add(a, b); break;
      case Mul: a = checked_mul(a, b); break;
      case Div: a = b == 0 ? 0 : floor_div(a, b); break;
      case Mod: a = b == 0 ? 0 : floor_mod(a, b); break;
      case Min: a = std::min(a, b); break;
      default: a = std::max(a, b);
    }
  }
  return stack[0];
}

}  // namespace brasa::compiler
