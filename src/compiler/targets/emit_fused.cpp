#include <llvm/IR/Intrinsics.h>

#include "compiler/targets/emitter.h"

// A product that is added or subtracted once, in the loops that it is computed in, is rounded with that sum. The loop graph alone says
// where: the same places in optimized code and in baseline code.
namespace brasa::compiler {

llvm::Value* Emitter::fused(llvm::Value* x, llvm::Value* y, llvm::Value* sum) {
  match(x, y);
  match(x, sum);
  match(y, sum);
  return intrinsic(llvm::Intrinsic::fma, {x, y, sum});
}

// The product that `user`, in the given loops, adds; null for others.
const Node* Emitter::fused_product(Value v, const Node* user, Ranges ranges) const {
  const Node* n = v.node;
  if (!fuses_ || exact_.count(user) || exact_.count(n) || ir::is_input(v) || loop_kind(n->op)) return nullptr;
  if (loop_kind(user->op) == LoopOp::Reduce && user->arg<std::string>(2) != "add") return nullptr;
  DType t = n->types[0].dtype;
  if ((t != DType::Float32 && t != DType::Float64) || user->types[0].dtype != t) return nullptr;
  // Parallel loops that a product does not follow, as a batch of one, are around all of its own.
  Ranges around = ranges & analysis_.kind(ForKind::Parallel);
  if (scalar_op_of(n->op) != ScalarOp::Mul || (analysis_.of(n) | around) != ranges) return nullptr;
  auto uses = uses_.find(n);
  return uses != uses_.end() && uses->second == 1 ? n : nullptr;
}

llvm::Value* Emitter::fused(const Node* product, llvm::Value* sum, bool negative) {
  llvm::Value *x = eval(product->arg<Value>(0)), *y = eval(product->arg<Value>(1));
  return fused(negative ? b_.CreateFNeg(x) : x, y, sum);
}

// Null for what is no sum or difference with a product.
llvm::Value* Emitter::emit_fused(ScalarOp op, const Node* n) {
  if (op != ScalarOp::Add && op != ScalarOp::Sub) return nullptr;
  bool minus = op == ScalarOp::Sub;
  if (const Node* product = fused_product(n->arg<Value>(0), n, analysis_.of(n))) {
    llvm::Value* other = eval(n->arg<Value>(1));
    return fused(product, minus ? b_.CreateFNeg(other) : other);
  }
  if (const Node* product = fused_product(n->arg<Value>(1), n, analysis_.of(n)))
    return fused(product, eval(n->arg<Value>(0)), minus);
  return nullptr;
}

}  // namespace brasa::compiler
