#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brasa::runtime {

/// Compiled kernels as bytes that can be stored anywhere: for a CPU a position-independent blob of code and constants
/// without any reference to the outside, for CUDA the text of a PTX module.
struct KernelEntry {
  std::string name;
  uint64_t offset = 0;  // of the first instruction in `code`; unused for PTX
};

struct KernelImage {
  std::string target;  // what it was compiled for: "x86-64+avx2+fma…", "nvptx+sm_80"
  std::vector<KernelEntry> entries;
  std::vector<uint8_t> code;

  /// Bytes with a header and a checksum.
  std::string serialize() const;
  /// brasa::Error that says what is wrong with torn, foreign or outdated bytes.
  static KernelImage parse(std::string_view bytes);
};

}  // namespace brasa::runtime
