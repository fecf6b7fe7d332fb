#pragma once

#include <string_view>
#include <vector>

#include "compiler/libraries/library.h"
#include "compiler/run/size_program.h"

namespace brasa::compiler {

/// A primitive in a program that runs alone: what its runtime is told (src/export/alone/call.h), which computes it there, or has a GPU's library
/// compute it. Nothing runs it here.
struct AloneCall final : DeviceCall {
  std::string_view function;    // as the runtime names it
  std::vector<size_t> tensors;  // operands, then results, among the group's inputs and outputs
  std::vector<int64_t> facts;
  std::vector<SizeProgram> sizes;
  SizeProgram work;  // bytes of memory of its own

  void run(runtime::Device&, runtime::Stream, void* const*, const int64_t*) const override;
};

/// A floating dtype as the calls of a GPU's libraries are told it: 0 float32, 1 float64, 2 float16, 3 bfloat16.
int64_t alone_number(DType t);
/// Bytes of memory that calls of a GPU's libraries may work in.
inline constexpr int64_t kAloneWorkspace = 32 << 20;

extern const Implementation kAloneSort, kAloneFft, kAloneCholesky, kAloneLu, kAloneLuOrder, kAloneTriangularSolve,
    kAloneQr, kAloneReflectors, kAloneEigh, kAloneSvd;

}  // namespace brasa::compiler
