#include "program/conditions.h"

#include "compiler/run/executable.h"

namespace brasa::program {

Conditions::Conditions(std::vector<ir::Fact> facts) : facts_(std::move(facts)) {
  for (const ir::Fact& f : facts_) {
    Test t{Test::Right::Expression, f.equal, 0, 0};
    if (f.left->kind == ir::ExprKind::Size) {
      t.left = f.left->id;
      if (f.right.is_constant()) {
        t.right = Test::Right::Constant;
        t.operand = f.right.constant();
      } else if (f.right->kind == ir::ExprKind::Size) {
        t.right = Test::Right::Symbol;
        t.operand = f.right->id;
      }
    }
    tests_.push_back(t);
  }
}

const ir::Fact* Conditions::failed(const int64_t* symbols) const {
  for (size_t i = 0; i < tests_.size(); ++i) {
    const Test& t = tests_[i];
    bool equal = false;
    switch (t.right) {
      case Test::Right::Constant: equal = symbols[t.left] == t.operand; break;
      case Test::Right::Symbol: equal = symbols[t.left] == symbols[t.operand]; break;
      case Test::Right::Expression:
        equal = compiler::Executable::evaluate(facts_[i].left, symbols) ==
                compiler::Executable::evaluate(facts_[i].right, symbols);
        break;
    }
    if (equal != t.equal) return &facts_[i];
  }
  return nullptr;
}

}  // namespace brasa::program
