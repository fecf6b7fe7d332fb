#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <brasa/error.h>

#include "compiler/loops/math.h"
#include "compiler/targets/codegen.h"
#include "compiler/targets/emitter.h"
#include "compiler/targets/flat_image.h"
#include "compiler/version.h"
#include "ir/text.h"
#include "support/error.h"
#include "support/mutex.h"

// What this library and LLVM in it hold lives for ever: a thread may compile while the process exits, and some of these objects are made by
// the first kernel that needs them, so that no order of destructors would do. They ask for their destruction here.
extern "C" [[gnu::visibility("hidden")]] int __cxa_atexit(void (*)(void*), void*, void*);
extern "C" int __cxa_atexit(void (*)(void*), void*, void*) { return 0; }

namespace brasa::compiler {
namespace {

#if LLVM_VERSION_MAJOR < 18
constexpr auto kObject = llvm::CGFT_ObjectFile, kAssembly = llvm::CGFT_AssemblyFile;
#else
constexpr auto kObject = llvm::CodeGenFileType::ObjectFile, kAssembly = llvm::CodeGenFileType::AssemblyFile;
#endif

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
    ExpandedMath expanded = expand_math(*graph, target.math_instructions(), target.strict);
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
// iteration left the loops before, and constants are operands in memory. Moving chains of integers into registers of masks: masks are
// vectors of bits from the start. Ordering machine instructions: the processor does that.
// LLVM takes these choices from its command line alone, and asks for them when it lists its passes; targets with plainer addresses
// keep the passes, and order nothing.
void add_passes(llvm::legacy::PassManager& passes, llvm::raw_pwrite_stream& out, llvm::TargetMachine& machine,
                llvm::CodeGenFileType type) {
  static Mutex mutex;
  std::lock_guard lock(mutex);
  auto choose = [](const char* name, bool value) {
    llvm::cl::Option* choice = llvm::cl::getRegisteredOptions().lookup(name);
    if (!choice) return;
    choice->reset();
    choice->addOccurrence(1, name, value ? "true" : "false");
  };
  bool x86 = machine.getTargetTriple().isX86();
  for (const char* name :
       {"disable-lsr", "disable-machine-licm", "disable-machine-sink", "disable-x86-domain-reassignment"})
    choose(name, x86);
  choose("enable-misched", false);
  BRASA_ASSERT(!machine.addPassesToEmitFile(passes, out, nullptr, type), "LLVM cannot write this kind of file");
}

// A machine and its list of passes, from modules to files of one kind.
class Generator {
 public:
  Generator(const Target& target, llvm::CodeGenFileType type) : machine_(make_machine(target)) {
    if (!target.baseline) add_simplification(passes_, *machine_);
    add_passes(passes_, out_, *machine_, type);
  }
  llvm::TargetMachine& machine() { return *machine_; }
  std::string run(llvm::Module& module) {
    bytes_.clear();
    passes_.run(module);
    return {bytes_.data(), bytes_.size()};
  }

 private:
  std::unique_ptr<llvm::TargetMachine> machine_;
  llvm::SmallVector<char, 0> bytes_;
  llvm::raw_svector_ostream out_{bytes_};
  llvm::legacy::PassManager passes_;
};

// Each thread keeps its last ones for a CPU: making it takes half a millisecond, a small kernel as long. What LLVM has for PTX remembers
// types of a module that is gone.
std::shared_ptr<Generator> generator_for(const Target& target) {
  if (target.gpu) return std::make_shared<Generator>(target, kAssembly);
  struct Last {
    std::string target;
    std::shared_ptr<Generator> generator;
  };
  thread_local Last optimizing, baseline;
  Last& last = target.baseline ? baseline : optimizing;
  if (!last.generator || last.target != target.text) last = {target.text, std::make_shared<Generator>(target, kObject)};
  return last.generator;
}

std::string compile(std::span<const std::string_view> texts, std::string_view target_text) {
  Target target = parse_target(target_text);
  llvm::LLVMContext context;
  std::shared_ptr<Generator> generator = generator_for(target);
  auto module = build(context, target, generator->machine(), texts);
  std::string file = generator->run(*module);
  if (!target.gpu) return link_flat(file, target.text).serialize();
  runtime::KernelImage image;
  image.target = target.text;
  for (const llvm::Function& f : *module)
    if (!f.isDeclaration()) image.entries.push_back({f.getName().str(), 0});
  image.code.assign(file.begin(), file.end());
  return image.serialize();
}

std::string show(std::string_view text, std::string_view target_text, std::string_view stage) {
  Target target = parse_target(target_text);
  if (stage == "loops") {
    auto graph = ir::parse(text, find_loop_level_op);
    return print(linearize(*graph));
  }
  Generator generator(target, kAssembly);
  llvm::LLVMContext context;
  auto module = build(context, target, generator.machine(), {&text, 1});
  if (stage == "llvm-raw" || stage == "llvm") {
    llvm::legacy::PassManager passes;
    if (stage == "llvm" && !target.baseline) add_simplification(passes, generator.machine());
    passes.run(*module);
    std::string out;
    llvm::raw_string_ostream stream(out);
    module->print(stream, nullptr);
    return stream.str();
  }
  BRASA_CHECK(stage == "assembly", "no stage '", stage, "': loops, llvm-raw, llvm and assembly are");
  return generator.run(*module);
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
