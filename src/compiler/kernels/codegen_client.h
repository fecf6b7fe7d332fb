#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "runtime/image.h"

namespace brasa::compiler {

/// Compiles the texts of loop graphs, each named by its graph, for a target ("x86-64+avx512", runtime::cpu::host_target(),
/// "nvptx+sm_80"). The code generator with LLVM in it is loaded on the first call: from BRASA_CODEGEN, or beside the
/// library. brasa::Error if it is not there or does not know the target.
runtime::KernelImage compile_kernel_texts(std::span<const std::string> texts, std::string_view target);
/// A graph's text without a name (it begins with `graph loops "" {`), with this one.
std::string named(const std::string& text, const std::string& name);
/// As `compile_kernel_texts`, on the thread pool: texts[i] is in one of the images, under its graph's name.
std::vector<runtime::KernelImage> compile_kernels_in_parallel(std::span<const std::string> texts,
                                                              std::string_view target);

/// A kernel on its way, for people: stage is "loops", "llvm-raw", "llvm" or "assembly".
std::string show_kernel(const ir::Graph& graph, std::string_view target, std::string_view stage);

/// The code generator's file, as it was loaded; brasa::Error where there is none of this build.
std::string codegen_path();

/// The folder of the library or program that this code is in.
std::string own_folder();

}  // namespace brasa::compiler
