#pragma once

#include <string_view>

#include "compiler/libraries/library.h"
#include "runtime/device.h"

namespace brasa::compiler {

/// What schedules depend on, read from a target description such as "x86-64+avx512" or "nvptx+sm_80".
struct Machine {
  int vector_bytes = 16;
  int vector_registers = 16;
  int threads = 1;
  bool gpu = false;
  Libraries libraries{runtime::Properties().libraries};

  /// Lanes of a vector of elements of this size.
  int lanes(int64_t element_bytes) const { return static_cast<int>(vector_bytes / element_bytes); }
};

Machine machine_of(std::string_view target, int threads);

}  // namespace brasa::compiler
