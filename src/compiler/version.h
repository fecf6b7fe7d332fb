#pragma once

#include <string_view>

namespace brasa::compiler {

/// Part of every cache's key: a hash of the sources that make code of a kernel's text (loops/, targets/) and of LLVM's version,
/// made by the build.
extern const std::string_view kCompilerVersion;

/// Likewise of the sources that make kernels' texts of a graph: the compiler, operators, graphs and their transforms.
extern const std::string_view kPipelineVersion;

}  // namespace brasa::compiler
