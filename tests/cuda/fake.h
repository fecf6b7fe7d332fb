#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <string>

#include "../fakes/control.h"

// The libraries of tests/fakes as these tests see them.
namespace brasa::test {

inline void use_fakes() {
  setenv("BRASA_CUDA_LIBRARIES", BRASA_FAKES, 1);
  setenv("BRASA_EMU_LIBRARIES", "cublaslt", 1);
}

inline fakes::Control& fake(const char* file) {
  void* library = dlopen((std::string(BRASA_FAKES) + "/" + file).c_str(), RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<fakes::Control* (*)()>(dlsym(library, "brasa_fake"))();
}
inline fakes::Control& fake_driver() { return fake("libcuda.so.1"); }
inline fakes::Control& fake_cublaslt() { return fake("libcublasLt.so.13"); }

}  // namespace brasa::test
