#include "export/embedded.h"

// The assembler reads the files.
#define EMBED(name, path)                                                                                      \
  __asm__(".pushsection .rodata\n.balign 16\n.globl brasa_embedded_" #name "\n.hidden brasa_embedded_" #name   \
          "\n.globl brasa_embedded_" #name "_end\n.hidden brasa_embedded_" #name "_end\nbrasa_embedded_" #name \
          ":\n.incbin \"" path "\"\nbrasa_embedded_" #name "_end:\n.popsection\n");                            \
  extern "C" __attribute__((visibility("hidden"))) const char brasa_embedded_##name[], brasa_embedded_##name##_end[];

EMBED(runtime, ALONE_RUNTIME)
EMBED(main, ALONE_MAIN)
EMBED(program, ALONE_PROGRAM)

namespace brasa::exporting {

const Embedded& embedded() {
  auto between = [](const char* begin, const char* end) {
    return std::string_view(begin, static_cast<size_t>(end - begin));
  };
  static const Embedded files{between(brasa_embedded_runtime, brasa_embedded_runtime_end),
                              between(brasa_embedded_main, brasa_embedded_main_end),
                              between(brasa_embedded_program, brasa_embedded_program_end)};
  return files;
}

}  // namespace brasa::exporting
