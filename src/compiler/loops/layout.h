#pragma once

#include <unordered_map>

#include "compiler/loops/ops.h"

namespace brasa::compiler {

/// What must be known to call a compiled kernel; follows from its loop graph alone.
struct KernelLayout {
  /// The first slots are as many addresses; numbers follow, a slot each.
  size_t addresses = 0, numbers = 0;
  /// The size symbols in the order of the last slots.
  std::vector<ir::Expr> sizes;
  /// Iterations of the flattened parallel or block loops: the kernel's [0, count).
  ir::Expr count = 1;
  size_t slots() const { return addresses + numbers + sizes.size(); }
  /// GPU: threads of a block; calls in one launch.
  int64_t threads = 1, calls = 1;
  /// CPU: bytes of scratch memory each thread needs. GPU: of memory that a block shares, beside what its code declares.
  ir::Expr scratch_bytes = 0;
  /// Where each stage that is not on the stack, or that code does not declare, starts there, in bytes.
  std::unordered_map<const ir::Node*, ir::Expr> scratch_offsets;
  /// What the others take of the stack at most: a size may be a symbol with an upper bound.
  std::unordered_map<const ir::Node*, int64_t> stack_bytes;
};

KernelLayout layout_of(const ir::Graph& graph);
/// How many of its inputs are buffers.
size_t addresses_of(const ir::Graph& graph);

}  // namespace brasa::compiler
