#include "compiler/run/size_program.h"

#include <algorithm>
#include <unordered_map>

#include "support/checked.h"
#include "support/error.h"
#include "support/fresh_stack.h"

namespace brasa::compiler {

using ir::Expr;
using ir::ExprKind;

// Expressions share parts: each is computed once.
class SizeProgram::Writer {
 public:
  explicit Writer(std::vector<Instruction>& code) : code_(code) {}

  uint32_t value_of(Expr e) {
    if (auto it = known_.find(e); it != known_.end()) return it->second;
    uint32_t at = with_room([&] { return write(e); });
    known_.emplace(e, at);
    return at;
  }

 private:
  uint32_t push(Op op, uint32_t a, int64_t b, bool number) {
    code_.push_back({op, number, a, b});
    return static_cast<uint32_t>(code_.size() - 1);
  }
  uint32_t fold(Expr e, Op op, bool with_value) {
    uint32_t at = value_of(e->args[0]);
    for (size_t i = 1; i < e->args.size(); ++i) {
      Expr right = e->args[i];
      at = right.is_constant() ? push(op, at, right.constant(), true) : push(op, at, value_of(right), false);
    }
    return with_value ? push(op, at, e->value, true) : at;
  }
  uint32_t write(Expr e) {
    switch (e->kind) {
      case ExprKind::Constant: return push(Number, 0, e->value, true);
      case ExprKind::Size: return push(Symbol, 0, e->id, true);
      case ExprKind::Mul: return fold(e, Mul, e->value != 1);
      case ExprKind::Add: return fold(e, Add, e->value != 0);
      case ExprKind::FloorDiv: return fold(e, Div, false);
      case ExprKind::Mod: return fold(e, Mod, false);
      case ExprKind::Min: return fold(e, Min, false);
      case ExprKind::Max: return fold(e, Max, false);
      default: fail_internal(str("a size depends on the loop index in ", e));
    }
  }

  std::vector<Instruction>& code_;
  std::unordered_map<Expr, uint32_t> known_;
};

SizeProgram::SizeProgram(Expr e) {
  if (e.is_constant())
    constant_ = e.constant();
  else
    Writer(code_).value_of(e);
}

SizeProgram::SizeProgram(int64_t constant, std::vector<Instruction> code)
    : constant_(constant), code_(std::move(code)) {
  for (size_t i = 0; i < code_.size(); ++i) {
    const Instruction& c = code_[i];
    bool leaf = c.op <= Symbol;
    BRASA_CHECK(c.op <= Max && (leaf ? c.number : c.a < i) && (c.number || static_cast<uint64_t>(c.b) < i),
                "a size's instruction ", i, " reads what there is not");
  }
}

int64_t SizeProgram::evaluate(const int64_t* symbols) const {
  constexpr size_t kFew = 32;
  int64_t few[kFew];
  if (code_.size() <= kFew) return evaluate(symbols, few);
  std::vector<int64_t> many(code_.size());
  return evaluate(symbols, many.data());
}

int64_t SizeProgram::evaluate(const int64_t* symbols, int64_t* values) const {
  int64_t* out = values;
  for (const Instruction& c : code_) {
    int64_t a = c.op > Symbol ? values[c.a] : 0, b = c.number ? c.b : values[c.b];
    switch (c.op) {
      case Number: *out = b; break;
      case Symbol: *out = symbols[b]; break;
      case Add: *out = checked_add(a, b); break;
      case Mul: *out = checked_mul(a, b); break;
      case Div: *out = b == 0 ? 0 : floor_div(a, b); break;
      case Mod: *out = b == 0 ? 0 : floor_mod(a, b); break;
      case Min: *out = std::min(a, b); break;
      case Max: *out = std::max(a, b); break;
    }
    ++out;
  }
  return out[-1];
}

}  // namespace brasa::compiler
