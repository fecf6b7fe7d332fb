#pragma once

#include <vector>

#include "ir/expr.h"

namespace brasa::compiler {

/// A number that each run computes from the graph's symbols; a constant costs nothing.
class SizeProgram {
 public:
  SizeProgram() = default;
  explicit SizeProgram(ir::Expr e);
  int64_t operator()(const int64_t* symbols) const {
    if (code_.empty()) return constant_;
    return code_.size() == 1 ? symbols[code_[0].b] : evaluate(symbols);  // mostly it is a symbol
  }

  enum Op : uint8_t { Number, Symbol, Add, Mul, Div, Mod, Min, Max };
  /// Gives a value of its own: a number, the symbol's of a number, or one of two operands: what an earlier instruction gave, and
  /// either another's or a number.
  struct Instruction {
    Op op;
    bool number;  // b is the operand itself
    uint32_t a;
    int64_t b;
  };
  /// As `constant` and `code` gave it; brasa::Error for instructions that are none.
  SizeProgram(int64_t constant, std::vector<Instruction> code);
  /// Empty for a constant.
  const std::vector<Instruction>& code() const { return code_; }
  int64_t constant() const { return constant_; }

 private:
  class Writer;
  int64_t evaluate(const int64_t* symbols) const;
  /// `values` has room for one an instruction.
  int64_t evaluate(const int64_t* symbols, int64_t* values) const;
  int64_t constant_ = 0;
  std::vector<Instruction> code_;
};

}  // namespace brasa::compiler
