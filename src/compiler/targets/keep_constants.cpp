#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Pass.h>

#include <map>
#include <utility>
#include <vector>

#include "compiler/targets/target.h"

// With AVX2 LLVM makes a vector of equal numbers anew where it uses one, by an instruction and into a register; AVX-512 has operands for
// that. Where there are more of them than registers, they are vectors that nothing is known of: registers that are full go to memory, from
// which an instruction takes an operand.
namespace brasa::compiler {
namespace {

constexpr unsigned kRegisterBits = 256;
constexpr size_t kFew = 8;

struct KeepConstants : llvm::FunctionPass {
  static inline char ID = 0;
  KeepConstants() : FunctionPass(ID) {}
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function& f) override {
    std::map<llvm::Constant*, std::vector<llvm::Use*>> uses;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (!takes_memory(i)) continue;
      for (llvm::Use& u : i.operands())
        if (auto* c = llvm::dyn_cast<llvm::Constant>(u.get()); c && is_repeated(c)) uses[c].push_back(&u);
    }
    if (uses.size() <= kFew) return false;
    llvm::IRBuilder<> b(&*f.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    for (auto& [constant, places] : uses) {
      llvm::Value* kept = b.CreateArithmeticFence(constant, constant->getType());
      for (llvm::Use* u : places) u->set(kept);
    }
    return true;
  }

  static bool takes_memory(const llvm::Instruction& i) {
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) return call->getIntrinsicID() == llvm::Intrinsic::fma;
    return i.getOpcode() == llvm::Instruction::FAdd || i.getOpcode() == llvm::Instruction::FSub ||
           i.getOpcode() == llvm::Instruction::FMul;
  }
  static bool is_repeated(llvm::Constant* c) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(c->getType());
    return type && type->getElementType()->isFloatingPointTy() &&
           type->getPrimitiveSizeInBits().getFixedValue() == kRegisterBits && c->getSplatValue() && !c->isNullValue();
  }
};

}  // namespace

llvm::FunctionPass* keep_constants() { return new KeepConstants; }

}  // namespace brasa::compiler
