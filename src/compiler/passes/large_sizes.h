#pragma once

#include <unordered_map>

#include "compiler/passes/passes.h"

namespace brasa::compiler {

/// Defines symbols for sizes that are large expressions, and for their large parts.
class LargeSizes {
 public:
  explicit LargeSizes(DefinedSymbols& to) : to_(to) {}
  ir::Expr operator()(const ir::Expr& e);

 private:
  DefinedSymbols& to_;
  std::unordered_map<ir::Expr, ir::Expr> known_;
};

}  // namespace brasa::compiler
