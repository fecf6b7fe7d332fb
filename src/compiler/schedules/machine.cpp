#include "compiler/schedules/machine.h"

#include <charconv>

namespace brasa::compiler {

namespace {

// CUDA C++ Programming Guide, Technical Specifications per Compute Capability: shared memory of a multiprocessor.
int64_t shared_bytes_of(std::string_view target) {
  constexpr std::string_view kBase = "nvptx+sm_";
  int sm = 0;
  if (target.starts_with(kBase)) std::from_chars(target.data() + kBase.size(), target.data() + target.size(), sm);
  int64_t kilobytes = sm >= 90 ? 228 : sm == 80 ? 164 : sm >= 86 ? 100 : sm >= 75 ? 64 : sm >= 70 ? 96 : 0;
  return kilobytes << 10;
}

}  // namespace

Machine machine_of(std::string_view target, int threads) {
  Machine m;
  m.threads = threads;
  m.gpu = target.starts_with("nvptx");
  // While a GPU reads and writes 4 bytes, it computes with dozens of numbers.
  if (m.gpu) m.recompute = 64;
  m.shared_bytes = shared_bytes_of(target);
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
