#include "export/embedded.h"

#include <algorithm>
#include <array>

#include "support/error.h"

// The assembler reads the files.
#define EMBED(name, path)                                                                                      \
  __asm__(".pushsection .rodata\n.balign 16\n.globl brasa_embedded_" #name "\n.hidden brasa_embedded_" #name   \
          "\n.globl brasa_embedded_" #name "_end\n.hidden brasa_embedded_" #name "_end\nbrasa_embedded_" #name \
          ":\n.incbin \"" path "\"\nbrasa_embedded_" #name "_end:\n.popsection\n");                            \
  extern "C" __attribute__((visibility("hidden"))) const char brasa_embedded_##name[], brasa_embedded_##name##_end[];
#define EMBEDDED(name) between(brasa_embedded_##name, brasa_embedded_##name##_end)

EMBED(x86_runtime, ALONE_FOLDER "/x86-64/runtime.o")
EMBED(x86_main, ALONE_FOLDER "/x86-64/main.o")
EMBED(aarch64_runtime, ALONE_FOLDER "/aarch64/runtime.o")
EMBED(aarch64_main, ALONE_FOLDER "/aarch64/main.o")
EMBED(program, ALONE_PROGRAM)

namespace brasa::exporting {
namespace {

std::string_view between(const char* begin, const char* end) { return {begin, static_cast<size_t>(end - begin)}; }

}  // namespace

const Processors& processors_with(const std::string& target) {
  static const std::array<Processors, 2> kinds = {
      Processors{"x86-64", {"x86-64", "x86-64+avx2", "x86-64+avx512"}, "cc", EMBEDDED(x86_runtime), EMBEDDED(x86_main)},
      Processors{"AArch64", {"aarch64"}, "aarch64-linux-gnu-gcc", EMBEDDED(aarch64_runtime), EMBEDDED(aarch64_main)}};
  std::string known;
  for (const Processors& p : kinds) {
    for (const std::string& t : p.targets) known += (known.empty() ? "" : ", ") + t;
    if (std::find(p.targets.begin(), p.targets.end(), target) == p.targets.end()) continue;
    BRASA_CHECK(!p.runtime.empty(), "export: this library was built where ", p.compiler,
                " was not, so it has no programs for ", p.name, ": install it and build Brasa again");
    return p;
  }
  fail(str("export: target '", target, "' is not known; these are: ", known));
}

std::string_view program_header() { return EMBEDDED(program); }

}  // namespace brasa::exporting
