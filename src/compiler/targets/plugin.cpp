#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <brasa/error.h>

#include <mutex>

#include "compiler/loops/math.h"
#include "compiler/targets/codegen.h"
#include "compiler/targets/emitter.h"
#include "compiler/targets/flat_image.h"
#include "compiler/version.h"
#include "ir/text.h"
#include "support/error.h"

namespace brasa::compiler {
namespace {

using Machine = std::unique_ptr<llvm::TargetMachine>;

#if LLVM_VERSION_MAJOR < 18
constexpr auto kObject = llvm::CGFT_ObjectFile, kAssembly = llvm::CGFT_AssemblyFile;
#else
constexpr auto kObject = llvm::CodeGenFileType::ObjectFile, kAssembly = llvm::CodeGenFileType::AssemblyFile;
#endif

// Each thread keeps its machine: making one takes a fifth of a millisecond.
llvm::TargetMachine& machine_for(const Target& target) {
  thread_local std::string key;
  thread_local Machine machine;
  if (!machine || key != target.text) {
    machine = make_machine(target);
    key = target.text;
  }
  return *machine;
}

std::unique_ptr<llvm::Module> build(llvm::LLVMContext& context, const Target& target, llvm::TargetMachine& machine,
                                    std::span<const std::string_view> texts) {
  auto module = std::make_unique<llvm::Module>("kernels", context);
#if LLVM_VERSION_MAJOR < 21
  module->setTargetTriple(target.triple);
#else
  module->setTargetTriple(llvm::Triple(target.triple));
#endif
  module->setDataLayout(machine.createDataLayout());
  module->setPICLevel(llvm::PICLevel::SmallPIC);
  for (std::string_view text : texts) {
    auto graph = ir::parse(text, find_loop_level_op);
    ExpandedMath expanded = expand_math(*graph);
    Emitter(*module, target, expanded).run();
  }
#ifndef NDEBUG
  std::string why;
  llvm::raw_string_ostream out(why);
  BRASA_ASSERT(!llvm::verifyModule(*module, &out), out.str());
#endif
  return module;
}

// Passes that take a third of the time that a kernel for x86 takes and find nothing there. Strength reduction of loops: an address
// is base + index * size in any case. Moving machine instructions out of loops and into branches: what is the same in every
// iteration left the loops before, and constants are operands in memory. LLVM takes these choices from its command line alone, and
// asks for them when it lists its passes; targets with plainer addresses keep the passes.
void add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& out, llvm::TargetMachine& machine,
                llvm::CodeGenFileType type) {
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  for (const char* name : {"disable-lsr", "disable-machine-licm", "disable-machine-sink"})
    if (llvm::cl::Option* choice = llvm::cl::getRegisteredOptions().lookup(name))
      static_cast<llvm::cl::opt<bool>*>(choice)->setValue(machine.getTargetTriple().isX86());
  BRASA_ASSERT(!machine.addPassesToEmitFile(passes, out, nullptr, type), "LLVM cannot write this kind of file");
}

std::string generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream out(bytes);
  llvm::legacy::PassManager passes;
  add_passes(passes, out, machine, type);
  passes.run(module);
  return {bytes.data(), bytes.size()};
}

std::string compile(std::span<const std::string_view> texts, std::string_view target_text) {
  Target target = parse_target(target_text);
  llvm::TargetMachine& machine = machine_for(target);
  llvm::LLVMContext context;
  auto module = build(context, target, machine, texts);
  simplify(*module, machine);
  if (!target.gpu) return link_flat(generate(*module, machine, kObject), target.text).serialize();
  runtime::KernelImage image;
  image.target = target.text;
  for (const llvm::Function& f : *module)
    if (!f.isDeclaration()) image.entries.push_back({f.getName().str(), 0});
  std::string ptx = generate(*module, machine, kAssembly);
  image.code.assign(ptx.begin(), ptx.end());
  return image.serialize();
}

std::string show(std::string_view text, std::string_view target_text, std::string_view stage) {
  Target target = parse_target(target_text);
  if (stage == "loops") {
    auto graph = ir::parse(text, find_loop_level_op);
    return print(linearize(*graph));
  }
  llvm::TargetMachine& machine = machine_for(target);
  llvm::LLVMContext context;
  auto module = build(context, target, machine, {&text, 1});
  if (stage == "llvm-raw" || stage == "llvm") {
    if (stage == "llvm") simplify(*module, machine);
    std::string out;
    llvm::raw_string_ostream stream(out);
    module->print(stream, nullptr);
    return stream.str();
  }
  BRASA_CHECK(stage == "assembly", "no stage '", stage, "': loops, llvm-raw, llvm and assembly are");
  simplify(*module, machine);
  return generate(*module, machine, kAssembly);
}

template <class F>
BrasaCodegenStatus guarded(BrasaCodegenSink sink, void* context, F f) {
  std::string result;
  auto status = kBrasaCodegenOk;
  try {
    result = f();
  } catch (const Error& e) {
    status = kBrasaCodegenUserError;
    result = e.what();
  } catch (const std::exception& e) {
    status = kBrasaCodegenInternalError;
    result = e.what();
  }
  sink(context, result.data(), result.size());
  return status;
}

BrasaCodegenStatus compile_entry(const char* const* texts, const size_t* sizes, size_t count, const char* target,
                                 BrasaCodegenSink sink, void* context) {
  return guarded(sink, context, [&] {
    std::vector<std::string_view> views;
    for (size_t i = 0; i < count; ++i) views.emplace_back(texts[i], sizes[i]);
    return compile(views, target);
  });
}

BrasaCodegenStatus show_entry(const char* text, size_t size, const char* target, const char* stage,
                              BrasaCodegenSink sink, void* context) {
  return guarded(sink, context, [&] { return show({text, size}, target, stage); });
}

}  // namespace
}  // namespace brasa::compiler

extern "C" __attribute__((visibility("default"))) const BrasaCodegen* brasa_codegen() {
  static const BrasaCodegen kTable{kBrasaCodegenVersion, brasa::compiler::kCompilerVersion.data(),
                                   brasa::compiler::compile_entry, brasa::compiler::show_entry};
  return &kTable;
}
