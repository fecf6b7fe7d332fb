#include "compiler/schedules/machine.h"

namespace brasa::compiler {

Machine machine_of(std::string_view target, int threads) {
  Machine m;
  m.threads = threads;
  m.gpu = target.starts_with("nvptx");
  // While a GPU reads and writes 4 bytes, it computes with dozens of numbers.
  if (m.gpu) m.recompute = 64;
  if (target.find("avx512") != std::string_view::npos) {
    m.vector_bytes = 64;
    m.vector_registers = 32;
  } else if (target.find("avx2") != std::string_view::npos) {
    m.vector_bytes = 32;
  } else if (target.starts_with("aarch64")) {
    m.vector_registers = 32;
  }
  return m;
}

}  // namespace brasa::compiler
