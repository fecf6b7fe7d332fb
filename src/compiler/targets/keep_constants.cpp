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

// With AVX2 LLVM makes a vector of equal numbers anew where it uses one, by an instruction and into a register. Where there are more of
// them than registers, they are vectors that nothing is known of: registers that are full go to memory, from which an instruction takes an
// operand. AVX-512 has operands that repeat a number from memory, but some processors read one vector of 64 bytes a cycle, and a long function
// has as many numbers as steps: half of the registers hold those that it uses most. What follows a sum in as many registers as there are
// gets them behind it: in front, they would take the sum's registers.
namespace brasa::compiler {
namespace {

constexpr unsigned kRegisterBits = 256, kLongRegisterBits = 512;
constexpr size_t kFew = 8;
constexpr size_t kHeld = 16;  // of 32 long registers
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
    std::vector<Uses> uses;
    std::map<llvm::Constant*, size_t> places_of;
    for (llvm::Instruction& i : llvm::instructions(f)) {
      if (!takes_memory(i)) continue;
      for (llvm::Use& u : i.operands())
        if (auto* c = llvm::dyn_cast<llvm::Constant>(u.get()); c && is_repeated(c)) {
          auto [it, is_new] = places_of.emplace(c, uses.size());
          if (is_new) uses.push_back({c, {}});
          uses[it->second].second.push_back(&u);
        }
    }
    if (uses.size() <= kFew) return false;
    size_t held = 0;
    for (auto& [constant, places] : most_used(uses)) {
      if (bits(constant->getType()) == kLongRegisterBits && held++ >= kHeld) continue;
      llvm::IRBuilder<> b(place(f, places));
      llvm::Value* kept = b.CreateArithmeticFence(constant, constant->getType());
      for (llvm::Use* u : places) u->set(kept);
    }
    return true;
  }

  using Uses = std::pair<llvm::Constant*, std::vector<llvm::Use*>>;
  // In the order of their first use where numbers are used as often as each other.
  static std::vector<Uses> most_used(const std::vector<Uses>& uses) {
    std::vector<Uses> out = uses;
    std::stable_sort(out.begin(), out.end(),
                     [](const Uses& a, const Uses& b) { return a.second.size() > b.second.size(); });
    return out;
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
             return phi.getType()->isVectorTy() && fills_a_register(phi.getType());
           });
  }

  static bool takes_memory(const llvm::Instruction& i) {
    if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i)) return call->getIntrinsicID() == llvm::Intrinsic::fma;
    return i.getOpcode() == llvm::Instruction::FAdd || i.getOpcode() == llvm::Instruction::FSub ||
           i.getOpcode() == llvm::Instruction::FMul;
  }
  static bool is_repeated(llvm::Constant* c) {
    auto* type = llvm::dyn_cast<llvm::FixedVectorType>(c->getType());
    return type && type->getElementType()->isFloatingPointTy() && fills_a_register(type) && c->getSplatValue() &&
           !c->isNullValue();
  }
  static uint64_t bits(llvm::Type* vector) { return vector->getPrimitiveSizeInBits().getFixedValue(); }
  static bool fills_a_register(llvm::Type* vector) {
    return bits(vector) == kRegisterBits || bits(vector) == kLongRegisterBits;
  }
};

}  // namespace

llvm::FunctionPass* keep_constants() { return new KeepConstants; }

}  // namespace brasa::compiler
