#include "compiler/targets/target.h"

#include <llvm/ADT/StringExtras.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar.h>
#include <llvm/Transforms/Scalar/GVN.h>
#include <llvm/Transforms/Utils.h>

#include <mutex>

#include "support/error.h"

namespace brasa::compiler {

#if LLVM_VERSION_MAJOR < 18
static constexpr auto kLevel = llvm::CodeGenOpt::Default, kBaselineLevel = llvm::CodeGenOpt::None;
#else
static constexpr auto kLevel = llvm::CodeGenOptLevel::Default, kBaselineLevel = llvm::CodeGenOptLevel::None;
#endif

Target parse_target(std::string_view text) {
  Target t;
  std::string_view base = text.substr(0, text.find(';'));
  std::string_view options = text.substr(base.size());
  t.text = base;
  if (options.ends_with(";baseline")) {
    t.baseline = true;
    options.remove_suffix(std::string_view(";baseline").size());
  }
  t.strict = options == ";strict";
  t.fast = options == ";fast";
  BRASA_CHECK(options.empty() || t.strict || t.fast, "target '", text,
              "': the options are ';strict' or ';fast', then ';baseline'");
  BRASA_CHECK(!t.baseline || (base.starts_with("x86-64") && !t.fast), "target '", text,
              "': ';baseline' is for x86-64 without ';fast'");
  if (base.starts_with("nvptx+sm_")) {
    t.gpu = true;
    t.cpu = base.substr(6);
    t.triple = "nvptx64-nvidia-cuda";
    t.features = "+ptx70";
    std::string_view number = base.substr(9);
    if (number == "89" || number == "90") t.features = "+ptx78";
    t.native_rounding = t.native_half = true;
    t.native_brain = t.native_extrema = number >= "80";
    t.early = number >= "90";
    BRASA_CHECK(
        number == "70" || number == "75" || number == "80" || number == "86" || number == "89" || number == "90",
        "target '", text, "': sm_70, sm_75, sm_80, sm_86, sm_89 and sm_90 are known");
    return t;
  }
  if (base == "aarch64") {
    t.triple = "aarch64-unknown-linux-gnu";
    t.cpu = "generic";
    t.native_half = t.native_rounding = t.fma = t.small = true;
    return t;
  }
  t.triple = "x86_64-unknown-linux-gnu";
  t.streams = true;
  if (base == "x86-64") {
    t.cpu = "x86-64";
  } else if (base == "x86-64+avx2") {
    t.cpu = "x86-64-v3";
    t.native_half = t.native_rounding = t.fma = t.wide_masks = true;
  } else if (base == "x86-64+avx512" || base == "x86-64+avx512+vnni" || base == "x86-64+avx512+bf16" ||
             base == "x86-64+avx512+bf16+amx") {
    t.cpu = "x86-64-v4";
    t.features = "-prefer-256-bit";
    t.quads = base != "x86-64+avx512";
    t.pairs = t.quads && base != "x86-64+avx512+vnni";
    t.tiles = base.ends_with("+amx");
    if (t.quads) t.features += ",+avx512vnni";
    if (t.pairs) t.features += ",+avx512bf16";
    if (t.tiles) t.features += ",+amx-tile,+amx-bf16,+amx-int8";
    t.native_half = t.native_rounding = t.fma = t.masks = t.scales = true;
  } else {
    fail(str("target '", text,
             "' is not known: x86-64, x86-64+avx2, x86-64+avx512, x86-64+avx512+vnni, x86-64+avx512+bf16, "
             "x86-64+avx512+bf16+amx, aarch64 and nvptx+sm_<number> are"));
  }
  return t;
}

std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeAArch64TargetInfo();
    LLVMInitializeAArch64Target();
    LLVMInitializeAArch64TargetMC();
    LLVMInitializeAArch64AsmPrinter();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  BRASA_CHECK(found, "this build's LLVM has no code generator for ", target.text);
  llvm::TargetOptions options;
  // The instructions' own contract flags say what may be fused.
  options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
  options.TrapUnreachable = false;
  std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(
      target.triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
      target.small ? llvm::CodeModel::Tiny : llvm::CodeModel::Small, target.baseline ? kBaselineLevel : kLevel));
  machine->setO0WantsFastISel(true);
  return machine;
}

void set_attributes(llvm::Function& f, const Target& target) {
  f.addFnAttr("target-cpu", target.cpu);
  if (!target.features.empty()) f.addFnAttr("target-features", target.features);
  f.addFnAttr("no-builtins");
  f.addFnAttr(llvm::Attribute::NoUnwind);
  if (target.gpu) return;
  f.addFnAttr("prefer-vector-width", "512");
  f.addFnAttr("min-legal-vector-width", "512");
  f.addFnAttr("probe-stack", "inline-asm");
}

namespace {

// Choices between halves become choices between their bits: what looks like the smaller of a half and a constant would be a call of
// fminf, which no kernel has.
struct ChooseBits : llvm::FunctionPass {
  static inline char ID = 0;
  ChooseBits() : FunctionPass(ID) {}
  void getAnalysisUsage(llvm::AnalysisUsage& usage) const override { usage.setPreservesCFG(); }

  bool runOnFunction(llvm::Function& f) override {
    std::vector<llvm::SelectInst*> choices;
    for (llvm::Instruction& i : llvm::instructions(f))
      if (auto* s = llvm::dyn_cast<llvm::SelectInst>(&i); s && s->getType()->getScalarType()->isHalfTy())
        choices.push_back(s);
    for (llvm::SelectInst* s : choices) {
      llvm::IRBuilder<> b(s);
      llvm::Type* bits = s->getType()->getWithNewType(b.getInt16Ty());
      llvm::Value* chosen = b.CreateSelect(s->getCondition(), b.CreateBitCast(s->getTrueValue(), bits),
                                           b.CreateBitCast(s->getFalseValue(), bits));
      s->replaceAllUsesWith(b.CreateBitCast(chosen, s->getType()));
      s->eraseFromParent();
    }
    return !choices.empty();
  }
};

}  // namespace

void add_simplification(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine) {
  passes.add(llvm::createTargetTransformInfoWrapperPass(machine.getTargetIRAnalysis()));
  llvm::TargetLibraryInfoImpl libraries(machine.getTargetTriple());
  libraries.disableAllFunctions();
  passes.add(new llvm::TargetLibraryInfoWrapperPass(libraries));
  passes.add(llvm::createSROAPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.add(llvm::createInstructionCombiningPass());
  passes.add(llvm::createCFGSimplificationPass());
  passes.add(llvm::createLICMPass());
  passes.add(llvm::createEarlyCSEPass());
  passes.add(llvm::createDeadCodeEliminationPass());
  passes.add(new ChooseBits);
  if (machine.getTargetCPU() == "x86-64-v3") {
    passes.add(decide_masks());
    passes.add(keep_constants());
  } else if (machine.getTargetTriple().isX86()) {
    passes.add(whole_reads());
    passes.add(keep_constants());
  } else if (machine.getTargetTriple().isNVPTX()) {
    passes.add(packed_extrema());
  }
}

}  // namespace brasa::compiler
