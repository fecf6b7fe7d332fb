#include <llvm/Analysis/ValueTracking.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Pass.h>
#include <llvm/Support/KnownBits.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compiler/targets/target.h"

// With AVX2 LLVM 19 reads whole registers where it finds while it selects instructions that no lane is asked for: it makes a mask of
// numbers of which only the sign counts, and then takes what is not 0 for yes. So registers whose lanes are known are decided before.
namespace brasa::compiler {
namespace {

constexpr unsigned kRegisterBits = 256;

struct DecideMasks : llvm::FunctionPass {
  static inline char ID = 0;
  DecideMasks() : FunctionPass(ID) {}
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function& f) override {
    std::vector<llvm::IntrinsicInst*> loads;
    for (llvm::Instruction& i : llvm::instructions(f))
      if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&i);
          call && call->getIntrinsicID() == llvm::Intrinsic::masked_load)
        loads.push_back(call);
    bool changed = false;
    for (llvm::IntrinsicInst* load : loads) changed = decide(load) || changed;
    return changed;
  }

  static std::optional<bool> lane_of(llvm::Value* mask, unsigned lane, unsigned lanes, const llvm::DataLayout& layout) {
    llvm::KnownBits known = llvm::computeKnownBits(mask, llvm::APInt::getOneBitSet(lanes, lane), layout);
    return known.isConstant() ? std::optional(known.getConstant().getBoolValue()) : std::nullopt;
  }

  static bool decide(llvm::IntrinsicInst* load) {
    auto* type = llvm::cast<llvm::FixedVectorType>(load->getType());
    llvm::Value *mask = load->getArgOperand(2), *other = load->getArgOperand(3);
    unsigned lanes = type->getNumElements(), bits = type->getScalarSizeInBits();
    unsigned width = std::min(lanes, kRegisterBits / bits), known_parts = 0;
    if (lanes % width != 0 || llvm::isa<llvm::Constant>(mask)) return false;
    std::vector<std::optional<bool>> known;
    for (unsigned i = 0; i < lanes; ++i) known.push_back(lane_of(mask, i, lanes, load->getModule()->getDataLayout()));
    auto is_known = [&](unsigned begin) {
      return std::all_of(known.begin() + begin, known.begin() + begin + width,
                         [](const auto& k) { return k.has_value(); });
    };
    for (unsigned begin = 0; begin < lanes; begin += width) known_parts += is_known(begin);
    if (known_parts == 0) return false;

    llvm::IRBuilder<> b(load);
    llvm::Type* part = llvm::FixedVectorType::get(type->getElementType(), width);
    llvm::Align align = llvm::cast<llvm::ConstantInt>(load->getArgOperand(1))->getAlignValue();
    llvm::SmallVector<llvm::Value*> parts;
    for (unsigned begin = 0; begin < lanes; begin += width) {
      llvm::SmallVector<int> places;
      llvm::SmallVector<llvm::Constant*> constants;
      for (unsigned i = begin; i < begin + width; ++i) {
        places.push_back(static_cast<int>(i));
        constants.push_back(b.getInt1(known[i].value_or(false)));
      }
      llvm::Value* asked = is_known(begin) ? llvm::ConstantVector::get(constants) : b.CreateShuffleVector(mask, places);
      llvm::Value *at = b.CreateConstGEP1_32(type->getElementType(), load->getArgOperand(0), begin),
                  *rest = b.CreateShuffleVector(other, places);
      auto* constant = llvm::dyn_cast<llvm::Constant>(asked);
      llvm::Align aligned = llvm::commonAlignment(align, uint64_t{begin} * bits / 8);
      if (constant && constant->isNullValue())
        parts.push_back(rest);
      else if (constant && constant->isAllOnesValue())
        parts.push_back(b.CreateAlignedLoad(part, at, aligned));
      else
        parts.push_back(b.CreateMaskedLoad(part, at, aligned, asked, rest));
    }
    load->replaceAllUsesWith(llvm::concatenateVectors(b, parts));
    load->eraseFromParent();
    return true;
  }
};

}  // namespace

llvm::FunctionPass* decide_masks() { return new DecideMasks; }

}  // namespace brasa::compiler
