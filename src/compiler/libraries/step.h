#pragma once

#include "compiler/fusion/fuse.h"
#include "compiler/libraries/library.h"
#include "compiler/run/size_program.h"

namespace brasa::compiler {

/// A library's call in a compiled graph.
class LibraryStep {
 public:
  /// Of a group of GroupKind::Library.
  explicit LibraryStep(const Group& group);

  /// Which inputs of the group the operands are, in order.
  const std::vector<size_t>& operands() const { return operands_; }
  /// Operands, then results.
  size_t bytes_of(size_t tensor, const int64_t* symbols) const;
  /// `tensors[i]` is the memory of each.
  void run(void* const* tensors, const int64_t* symbols) const;

 private:
  struct Tensor {
    DType dtype;
    std::vector<SizeProgram> sizes;
  };
  const Implementation* how_;
  ir::Args args_;
  std::vector<size_t> operands_;
  std::vector<Tensor> tensors_;
};

}  // namespace brasa::compiler
