#pragma once

#include "compiler/libraries/library.h"
#include "compiler/run/size_program.h"

namespace brasa::compiler {

/// A sort in a program that runs alone: what its runtime is told (src/export/alone/sort.h), which sorts there. Nothing runs it here.
struct LineSort final : DeviceCall {
  DType dtype = DType::Float32;
  bool descending = false;
  /// Lines as lines.h has them; `first` and `count` are the part of the sorted line that is wanted; bytes of the items up to its end.
  SizeProgram outer, length, inner, first, count, items;

  void run(runtime::Device&, runtime::Stream, void* const*, const int64_t*) const override;

 protected:
  double products(const int64_t*) const override { return 0; }
};

extern const Implementation kLineSort;

}  // namespace brasa::compiler
