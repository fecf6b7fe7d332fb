#pragma once

#include <vector>

#include "ir/expr.h"

namespace brasa::compiler {

/// A number that each run computes from the graph's symbols; a constant costs nothing.
class SizeProgram {
 public:
  SizeProgram() = default;
  explicit SizeProgram(ir::Expr e);
  int64_t operator()(const int64_t* symbols) const { return code_.empty() ? constant_ : evaluate(symbols); }

 private:
  enum Op : uint8_t { Push, Symbol, Add, Mul, Div, Mod, Min, Max };
  struct Instruction {
    Op op;
    int64_t value;
  };
  void emit(ir::Expr e);
  int64_t evaluate(const int64_t* symbols) const;
  int64_t constant_ = 0;
  std::vector<Instruction> code_;
};

}  // namespace brasa::compiler
