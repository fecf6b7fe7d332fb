#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/Pass.h>

#include <vector>

#include "compiler/targets/target.h"

// With AVX-512 LLVM reads through a mask what a mask chooses from, or is computed from in one instruction: memory does not send ahead for such
// reads, and they take twice as long where no cache has it. So vectors that are read whole are values that nothing is known of.
namespace brasa::compiler {
namespace {

struct WholeReads : llvm::FunctionPass {
  static inline char ID = 0;
  WholeReads() : FunctionPass(ID) {}
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function& f) override {
    std::vector<llvm::LoadInst*> reads;
    auto add = [&](llvm::Value* v) {
      if (auto* load = llvm::dyn_cast<llvm::LoadInst>(v); load && load->hasOneUse()) reads.push_back(load);
    };
    for (llvm::Instruction& i : llvm::instructions(f)) {
      auto* choice = llvm::dyn_cast<llvm::SelectInst>(&i);
      if (!choice || !choice->getCondition()->getType()->isVectorTy()) continue;
      for (llvm::Value* side : {choice->getTrueValue(), choice->getFalseValue()}) {
        add(side);
        if (auto* computed = llvm::dyn_cast<llvm::Instruction>(side); computed && computed->hasOneUse())
          for (llvm::Value* operand : computed->operands()) add(operand);
      }
    }
    for (llvm::LoadInst* load : reads) {
      llvm::IRBuilder<> b(load->getNextNode());
      llvm::User* user = *load->user_begin();
      user->replaceUsesOfWith(load, b.CreateFreeze(load));
    }
    return !reads.empty();
  }
};

}  // namespace

llvm::FunctionPass* whole_reads() { return new WholeReads; }

}  // namespace brasa::compiler
