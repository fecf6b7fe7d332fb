#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Pass.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "compiler/targets/target.h"

// A GPU finds the greater ones of two pairs of bfloat16 by one instruction, where they were two that are widened and compared each by itself.
// Which of many numbers is the greatest does not depend on the order, nor on whether it is found before it is widened: so words of which
// both halves are operands of one maximum are compared as they lie in memory.
namespace brasa::compiler {
namespace {

using namespace llvm::PatternMatch;

// The word whose half a float32 is, or null.
llvm::Value* word_of(llvm::Value* x, bool& high) {
  llvm::Value* word = nullptr;
  if (match(x, m_BitCast(m_Shl(m_Value(word), m_SpecificInt(16))))) {
    high = false;
  } else if (match(x, m_BitCast(m_And(m_Value(word), m_SpecificInt(0xffff0000))))) {
    high = true;
  } else {
    return nullptr;
  }
  return word->getType()->isIntegerTy(32) ? word : nullptr;
}

struct PackedExtrema : llvm::FunctionPass {
  static inline char ID = 0;
  PackedExtrema() : FunctionPass(ID) {}
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function& f) override {
    std::vector<llvm::IntrinsicInst*> last;
    for (llvm::Instruction& i : llvm::instructions(f))
      if (is_extremum(&i) && !(i.hasOneUse() && joins(i.user_back(), &i)))
        last.push_back(llvm::cast<llvm::IntrinsicInst>(&i));
    bool changed = false;
    for (llvm::IntrinsicInst* i : last) changed |= pack(i);
    return changed;
  }

 private:
  // What is left of a tree of maxima: numbers by themselves, and words of two.
  struct Operands {
    std::vector<llvm::Value*> numbers, words;
    std::vector<std::array<llvm::Value*, 2>> halves;
  };

  static bool is_extremum(llvm::Value* v) {
    auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(v);
    auto id = call ? call->getIntrinsicID() : llvm::Intrinsic::not_intrinsic;
    return (id == llvm::Intrinsic::maximum || id == llvm::Intrinsic::minimum) && v->getType()->isFloatTy();
  }

  static bool joins(llvm::Value* next, llvm::Instruction* before) {
    auto* n = llvm::dyn_cast<llvm::IntrinsicInst>(next);
    return n && is_extremum(n) && n->getParent() == before->getParent() &&
           n->getIntrinsicID() == llvm::cast<llvm::IntrinsicInst>(before)->getIntrinsicID();
  }

  static Operands operands_of(llvm::IntrinsicInst* last) {
    Operands out;
    std::vector<llvm::IntrinsicInst*> open{last};
    while (!open.empty()) {
      llvm::IntrinsicInst* at = open.back();
      open.pop_back();
      for (unsigned side : {1U, 0U}) {
        llvm::Value* x = at->getArgOperand(side);
        auto* before = llvm::dyn_cast<llvm::IntrinsicInst>(x);
        if (before && is_extremum(before) && before->hasOneUse() && joins(at, before)) {
          open.push_back(before);
          continue;
        }
        bool high = false;
        llvm::Value* word = word_of(x, high);
        size_t i = std::find(out.words.begin(), out.words.end(), word) - out.words.begin();
        if (word && i == out.words.size()) {
          out.words.push_back(word);
          out.halves.push_back({});
        }
        (word ? out.halves[i][high] : out.numbers.emplace_back()) = x;
      }
    }
    for (size_t i = out.words.size(); i-- > 0;) {
      if (out.halves[i][0] && out.halves[i][1]) continue;
      out.numbers.push_back(out.halves[i][0] ? out.halves[i][0] : out.halves[i][1]);
      out.words.erase(out.words.begin() + static_cast<ptrdiff_t>(i));
      out.halves.erase(out.halves.begin() + static_cast<ptrdiff_t>(i));
    }
    return out;
  }

  static bool pack(llvm::IntrinsicInst* last) {
    Operands all = operands_of(last);
    if (all.words.size() < 2) return false;
    llvm::IRBuilder<> b(last);
    bool max = last->getIntrinsicID() == llvm::Intrinsic::maximum;
    llvm::Type* word = b.getInt32Ty();
    auto* type = llvm::FunctionType::get(word, {word, word}, false);
    auto* pairs =
        llvm::InlineAsm::get(type, max ? "max.NaN.bf16x2 $0, $1, $2;" : "min.NaN.bf16x2 $0, $1, $2;", "=r,r,r", false);
    auto greatest = [&](std::span<llvm::Value* const> values, auto& join, const auto& self) -> llvm::Value* {
      size_t half = values.size() / 2;
      return half == 0 ? values[0] : join(self(values.first(half), join, self), self(values.subspan(half), join, self));
    };
    auto packed = [&](llvm::Value* x, llvm::Value* y) { return b.CreateCall(type, pairs, {x, y}); };
    llvm::Value* both = greatest(all.words, packed, greatest);
    for (llvm::Value* half : {b.CreateShl(both, 16), b.CreateAnd(both, 0xffff0000)})
      all.numbers.push_back(b.CreateBitCast(half, b.getFloatTy()));
    auto single = [&](llvm::Value* x, llvm::Value* y) { return b.CreateBinaryIntrinsic(last->getIntrinsicID(), x, y); };
    last->replaceAllUsesWith(greatest(all.numbers, single, greatest));
    llvm::RecursivelyDeleteTriviallyDeadInstructions(last);
    return true;
  }
};

}  // namespace

llvm::FunctionPass* packed_extrema() { return new PackedExtrema; }

}  // namespace brasa::compiler
