#pragma once

#include <string_view>

#include "compiler/libraries/library.h"
#include "runtime/device.h"

namespace brasa::compiler {

/// What schedules depend on, read from a target description such as "x86-64+avx512", "aarch64" or "nvptx+sm_80".
struct Machine {
  int vector_bytes = 16;
  int vector_registers = 16;
  int threads = 1;
  bool gpu = false;
  int processors = 132;      // of a GPU
  int64_t shared_bytes = 0;  // of the memory that the blocks on one of them share out
  /// A value that costs at most so many additions is computed again where it is read, if few tensors make it.
  int recompute = 4;
  /// Products of bfloat16 are added up two at a time, by one instruction.
  bool pairs = false;
  /// The same of 16-bit integers, which is exact where they were bytes.
  bool integer_pairs = false;
  /// Products of bytes, of which one is signed and the other is not, are added up four at a time.
  bool quads = false;
  /// Products of matrices of bfloat16 or bytes by tiles of 16 rows of 64 bytes (AMX).
  bool tiles = false;
  /// Strict numbers. On a CPU the order of a sum follows from its own extents then, whatever is known of them and is computed beside it.
  bool one_order = false;
  bool aligned = true;  // GPU: tensors begin at multiples of 16 bytes
  Libraries libraries{runtime::Properties().libraries};

  bool orders_sums() const { return one_order && !gpu; }
  /// Lanes of a vector of elements of this size.
  int lanes(int64_t element_bytes) const { return static_cast<int>(vector_bytes / element_bytes); }
};

Machine machine_of(std::string_view target, int threads);

}  // namespace brasa::compiler
