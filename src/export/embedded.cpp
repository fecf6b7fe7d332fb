#include "export/embedded.h"

#include <algorithm>
#include <array>

#include "support/error.h"
#include "support/lazy.h"

// The assembler reads the files.
#define EMBED(name, path)                                                                                      \
  __asm__(".pushsection .rodata\n.balign 16\n.globl brasa_embedded_" #name "\n.hidden brasa_embedded_" #name   \
          "\n.globl brasa_embedded_" #name "_end\n.hidden brasa_embedded_" #name "_end\nbrasa_embedded_" #name \
          ":\n.incbin \"" path "\"\nbrasa_embedded_" #name "_end:\n.popsection\n");                            \
  extern "C" __attribute__((visibility("hidden"))) const char brasa_embedded_##name[], brasa_embedded_##name##_end[];
#define EMBEDDED(name) between(brasa_embedded_##name, brasa_embedded_##name##_end)

EMBED(x86_runtime, ALONE_FOLDER "/x86-64/runtime.o")
EMBED(x86_calling, ALONE_FOLDER "/x86-64/calling.o")
EMBED(x86_main, ALONE_FOLDER "/x86-64/main.o")
EMBED(aarch64_runtime, ALONE_FOLDER "/aarch64/runtime.o")
EMBED(aarch64_calling, ALONE_FOLDER "/aarch64/calling.o")
EMBED(aarch64_main, ALONE_FOLDER "/aarch64/main.o")
EMBED(cuda_runtime, ALONE_FOLDER "/cuda/runtime.o")
EMBED(cuda_calling, ALONE_FOLDER "/cuda/calling.o")
EMBED(cuda_main, ALONE_FOLDER "/cuda/main.o")
EMBED(program, ALONE_PROGRAM)

namespace brasa::exporting {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

}  // namespace

const Processors& processors_with(const std::string& target) {
  // Levels as the runtime counts them: of GPUs their compute capability. "emu" is a GPU's loops on the CPU, for tests/fakes.
  static constinit Lazy<std::array<Processors, 3>> kinds([] {
    return std::array<Processors, 3>{Processors{"x86-64",
                                                {{"x86-64", 0}, {"x86-64+avx2", 1}, {"x86-64+avx512", 2}},
                                                "cc",
                                                EMBEDDED(x86_runtime),
                                                EMBEDDED(x86_calling),
                                                EMBEDDED(x86_main)},
                                     Processors{"AArch64",
                                                {{"aarch64", 0}},
                                                "aarch64-linux-gnu-gcc",
                                                EMBEDDED(aarch64_runtime),
                                                EMBEDDED(aarch64_calling),
                                                EMBEDDED(aarch64_main)},
                                     Processors{"NVIDIA's GPUs",
                                                {{"nvptx+sm_70", 70},
                                                 {"nvptx+sm_75", 75},
                                                 {"nvptx+sm_80", 80},
                                                 {"nvptx+sm_86", 86},
                                                 {"nvptx+sm_89", 89},
                                                 {"nvptx+sm_90", 90},
                                                 {"emu", 0, "nvptx+sm_80@x86-64"}},
                                                "cc",
                                                EMBEDDED(cuda_runtime),
                                                EMBEDDED(cuda_calling),
                                                EMBEDDED(cuda_main),
                                                true}};
  });
  std::string known;
  for (const Processors& p : *kinds) {
    bool has = false;
    for (const Level& l : p.levels) {
      known += (known.empty() ? "" : ", ") + l.target;
      has = has || l.target == target;
    }
    if (!has) continue;
    BRASA_CHECK(!p.runtime.empty(), "export: this library was built where ", p.compiler,
                " was not, so it has no programs for ", p.name, ": install it and build Brasa again");
    return p;
  }
  fail(str("export: target '", target, "' is not known; these are: ", known));
}

const Level& Processors::level(const std::string& target) const {
  return *std::find_if(levels.begin(), levels.end(), [&](const Level& l) { return l.target == target; });
}

std::string_view program_header() { return EMBEDDED(program); }

}  // namespace brasa::exporting
