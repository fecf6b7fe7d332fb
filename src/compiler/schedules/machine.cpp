#include "compiler/schedules/machine.h"

namespace brasa::compiler {

Machine machine_of(std::string_view target, int threads) {
  Machine m;
  m.threads = threads;
  m.gpu = target.starts_with("nvptx");
  // While a GPU reads and writes 4 bytes, it computes with dozens of numbers.
  if (m.gpu) m.recompute = 64;
  auto has = [&](std::string_view feature) { return target.find(feature) != std::string_view::npos; };
  m.tiles = has("+amx");
  m.pairs = has("+bf16") && !m.tiles;
  m.integer_pairs = target.starts_with("x86-64");
  m.quads = has("+vnni") || has("+bf16");
  if (has("avx512")) {
    m.vector_bytes = 64;
    m.vector_registers = 32;
  } else if (has("avx2")) {
    m.vector_bytes = 32;
  } else if (target.starts_with("aarch64")) {
    m.vector_registers = 32;
  }
  return m;
}

}  // namespace brasa::compiler
