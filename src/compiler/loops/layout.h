#pragma once

#include <unordered_map>

#include "compiler/loops/ops.h"

namespace brasa::compiler {

/// What must be known to call a compiled kernel; follows from its loop graph alone.
struct KernelLayout {
  /// The size symbols in the order of the kernel's `sizes` argument.
  std::vector<ir::Expr> sizes;
  /// Iterations of the flattened parallel or block loops: the kernel's [0, count).
  ir::Expr count = 1;
  /// GPU: threads of a block.
  int64_t threads = 1;
  /// CPU: bytes of scratch memory each thread needs.
  ir::Expr scratch_bytes = 0;
  /// CPU: where each stage that is not on the stack starts in the scratch memory, in bytes.
  std::unordered_map<const ir::Node*, ir::Expr> scratch_offsets;
};

KernelLayout layout_of(const ir::Graph& graph);

}  // namespace brasa::compiler
