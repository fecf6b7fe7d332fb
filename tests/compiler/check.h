#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "ops/algebra.h"

// A graph compiled and run, compared with the reference interpreter.
namespace brasa::compiler::testing {

/// One input: its sizes, and bounds of its values.
struct In {
  DType dtype = DType::Float32;
  std::vector<int64_t> sizes;
  double low = -2, high = 2;
  /// Strides in memory; empty: contiguous.
  std::vector<int64_t> strides = {};
};

/// Builds the outputs from the inputs with the current Builder.
using Build = std::function<std::vector<ir::Value>(const std::vector<ir::Value>&)>;

struct Options {
  bool symbolic = false;       // every size and stride of the inputs a symbol
  double tolerance = 0;        // relative; 0: by dtype
  std::vector<int> into = {};  // by output: Output::into
  bool by_value = false;       // inputs without dimensions that are not written are the host's
  CompilerOptions compile = {};
};

/// Fails the test where a result differs from the interpreter's: on the CPU, and unless `options` name a device or target also on an
/// emulated GPU, and on the GPU where there is one. Gives the compiler's report for the CPU.
Report check(const std::vector<In>& inputs, const Build& build, const Options& options = {});
/// With constant and with symbolic sizes.
void check_both(const std::vector<In>& inputs, const Build& build, double tolerance = 0);

}  // namespace brasa::compiler::testing
