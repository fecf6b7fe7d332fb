#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

#include "../fakes/control.h"

// The libraries of tests/fakes as these tests see them.
namespace brasa::test {

inline void use_fakes() {
  setenv("BRASA_CUDA_LIBRARIES", BRASA_FAKES, 1);
  setenv("BRASA_EMU_LIBRARIES", "cublaslt,cublaslt_tf32,cudnn", 1);
}

inline fakes::Control& fake(const char* file) {
  void* library = dlopen((std::filesystem::path(BRASA_FAKES) / file).c_str(), RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<fakes::Control* (*)()>(dlsym(library, "brasa_fake"))();
}
inline fakes::Control& fake_driver() { return fake("libcuda.so.1"); }
inline fakes::Control& fake_cublaslt() { return fake("libcublasLt.so.13"); }

inline fakes::Control& fake_cudnn() { return fake("libcudnn.so.9"); }

/// Calls since this was made.
class Counted {
 public:
  Counted(fakes::Control& library, const char* function)
      : library_(library), function_(function), before_(library.calls(function)) {}
  int operator()() const { return library_.calls(function_) - before_; }

 private:
  fakes::Control& library_;
  const char* function_;
  int before_;
};

}  // namespace brasa::test
