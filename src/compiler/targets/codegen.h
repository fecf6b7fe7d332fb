#pragma once

#include <cstddef>
#include <cstdint>

// The interface of libbrasa-codegen.so: plain C, because the library has its own copy of the IR (interned expressions
// of one copy mean nothing to the other). Kernels travel as the text of loop graphs.
extern "C" {

constexpr uint32_t kBrasaCodegenVersion = 2;

enum BrasaCodegenStatus : int32_t {
  kBrasaCodegenOk = 0,
  kBrasaCodegenUserError = 1,      // the message is meant for the user: an unknown target
  kBrasaCodegenInternalError = 2,  // a graph that breaks the rules of its level
};

/// Receives the result: the serialized KernelImage, or the message of an error. Called once.
using BrasaCodegenSink = void (*)(void* context, const char* data, size_t size);

/// Compiles `count` kernels into one image. Kernel i is named by its graph's name. Thread-safe.
using BrasaCodegenCompile = BrasaCodegenStatus (*)(const char* const* texts, const size_t* sizes, size_t count,
                                                   const char* target, BrasaCodegenSink sink, void* context);
/// One step of the way to code as text, for `BRASA_LOGS=code`: stage is "loops", "llvm-raw", "llvm" or "assembly".
using BrasaCodegenShow = BrasaCodegenStatus (*)(const char* text, size_t size, const char* target, const char* stage,
                                                BrasaCodegenSink sink, void* context);

struct BrasaCodegen {
  uint32_t version;
  const char* build;  // kCompilerVersion: code of another build must not be kept under this one's keys
  BrasaCodegenCompile compile;
  BrasaCodegenShow show;
};

/// The one symbol that the library exports.
using BrasaCodegenEntry = const BrasaCodegen* (*)();
}
