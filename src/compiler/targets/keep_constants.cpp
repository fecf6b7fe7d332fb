#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Pass.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "compiler/targets/target.h"

// With AVX2 LLVM makes a vector of equal numbers anew where it uses one, by an instruction and into a register; AVX-512 has operands for
// that. Where there are more of them than registers, they are vectors that nothing is known of: registers that are full go to memory, from
// which an instruction takes an operand. What follows a sum in as many registers as there are gets them behind it: in front, they would
// take the sum's registers.
namespace brasa::compiler {
namespace {

constexpr unsigned kRegisterBits = 256;
constexpr size_t kFew = 8;
// So many registers from one iteration to the next leave none for constants.
constexpr int64_t kFull = 8;

struct KeepConstants : llvm::FunctionPass {
  static inline char ID = 0;
  KeepConstants() : FunctionPass(ID) {}
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override {
    usage.setPreservesCFG();
    usage.addRequired<llvm::DominatorTreeWrapperPass>();
    usage.addRequired<llvm::LoopInfoWrapperPass>();
  }

  bool runOnFunction(llvm::Function& f) override {
    std::map<llvm::Constant*, std::vector<llvm::Use*>> uses;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (!takes_memory(i)) continue;
      for (llvm::Use& u : i.operands())
        if (auto* c = llvm::dyn_cast<llvm::Constant>(u.get()); c && is_repeated(c)) uses[c].push_back(&u);
    }
    if (uses.size() <= kFew) return false;
    for (auto& [constant, places] : uses) {
      llvm::IRBuilder<> b(place(f, places));
      llvm::Value* kept = b.CreateArithmeticFence(constant, constant->getType());
      for (llvm::Use* u : places) u->set(kept);
    }
    return true;
  }

  // In front of the outermost loop around all uses that has no full loop without them.
  llvm::Instruction* place(llvm::Function& f, const std::vector<llvm::Use*>& uses) {
    auto& loops = getAnalysis<llvm::LoopInfoWrapperPass>().getLoopInfo();
    auto block = [](const llvm::Use* u) { return llvm::cast<llvm::Instruction>(u->getUser())->getParent(); };
    auto used_in = [&](const llvm::Loop* l) {
      return std::any_of(uses.begin(), uses.end(), [&](const llvm::Use* u) { return l->contains(block(u)); });
    };
    llvm::SmallVector<const llvm::Loop*> full;
    for (const llvm::Loop* l : loops.getLoopsInPreorder())
      if (is_full(*l) && !used_in(l)) full.push_back(l);
    llvm::Loop* around = loops.getLoopFor(block(uses[0]));
    while (around &&
           !std::all_of(uses.begin(), uses.end(), [&](const llvm::Use* u) { return around->contains(block(u)); }))
      around = around->getParentLoop();
    auto free_of_full = [&](const llvm::Loop* l) {
      return std::none_of(full.begin(), full.end(), [&](const llvm::Loop* each) { return !l || l->contains(each); });
    };
    if (!around || free_of_full(nullptr)) return &*f.getEntryBlock().getFirstNonPHIOrDbgOrAlloca();
    while (around->getParentLoop() && free_of_full(around->getParentLoop())) around = around->getParentLoop();
    auto& dominators = getAnalysis<llvm::DominatorTreeWrapperPass>().getDomTree();
    return dominators[around->getHeader()]->getIDom()->getBlock()->getTerminator();
  }

  static bool is_full(const llvm::Loop& l) {
    auto phis = l.getHeader()->phis();
    return kFull <= std::count_if(phis.begin(), phis.end(), [](const llvm::PHINode& phi) {
             return phi.getType()->isVectorTy() &&
                    phi.getType()->getPrimitiveSizeInBits().getFixedValue() == kRegisterBits;
           });
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
