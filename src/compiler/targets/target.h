#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "compiler/loops/math.h"

namespace llvm {
class FunctionPass;
class Function;
class Module;
class TargetMachine;
namespace legacy {
class PassManager;
}
}  // namespace llvm

namespace brasa::compiler {

/// A target description as data: "x86-64", "x86-64+avx2", "x86-64+avx512", "x86-64+avx512+vnni", "x86-64+avx512+bf16",
/// "x86-64+avx512+bf16+amx", "aarch64",
/// "nvptx+sm_80", with ";strict" or ";fast" for these levels of numbers (compile.h), and ";baseline" for code of an x86 that is made in a
/// tenth of the time, runs much slower and gives the same bits.
struct Target {
  std::string text;  // without options
  bool gpu = false, strict = false, fast = false, baseline = false;
  // What the code generator itself decides by.
  bool masks = false;       // masked vector loads and stores of every width
  bool wide_masks = false;  // of 32 and 64 bits
  bool has_masks(int64_t bytes) const { return masks || (wide_masks && bytes >= 4); }  // of elements
  bool native_half = false;                                                            // f16 <-> f32 conversions
  bool native_brain = false;                                                           // f32 -> bf16
  bool native_extrema = false;   // maxima and minima of f32 that keep NaN
  bool pairs = false;            // adds products of pairs of bfloat16
  bool quads = false;            // adds products of four bytes
  bool scales = false;           // x * 2^n
  bool tiles = false;            // products of matrices by tiles (AMX)
  bool fma = false;              // x * y + z, rounded once
  bool native_rounding = false;  // floor, ceil, trunc, round to even
  bool early = false;            // kernels start before those they depend on have ended
  bool streams = false;          // stores that go past the caches
  bool small = false;            // code reaches its constants in a few instructions only where all are within 1 MiB
  std::string triple, cpu, features;
  MathInstructions math_instructions() const { return {gpu, scales}; }
};

/// brasa::Error on a description that it does not know.
Target parse_target(std::string_view text);
std::unique_ptr<llvm::TargetMachine> make_machine(const Target& target);
/// Attributes that every function of a module for the target needs.
void set_attributes(llvm::Function& f, const Target& target);

/// The simplification passes.
void add_simplification(llvm::legacy::PassManager& passes, llvm::TargetMachine& machine);
/// A pass that decides masks of reads where LLVM would decide them wrongly later.
llvm::FunctionPass* decide_masks();
/// For AVX2, at the end: see keep_constants.cpp.
llvm::FunctionPass* keep_constants();
/// For AVX-512: no read through a mask where a whole one will do.
llvm::FunctionPass* whole_reads();
/// For a GPU, at the end: maxima and minima of pairs of bfloat16.
llvm::FunctionPass* packed_extrema();

}  // namespace brasa::compiler
