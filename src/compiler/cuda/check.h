#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compiler/cuda/mirror.h"
#include "compiler/run/compiled.h"

namespace brasa::compiler {

/// Runs each kernel's loops on the CPU as well, on a copy of all memory, and tells on stderr where the GPU's results differ. The
/// GPU's memory then gets the CPU's results, so that each kernel is judged alone.
class CudaCheck {
 public:
  /// One kernel: its loops for the CPU, and the tensors that it writes.
  struct Kernel {
    LoadedKernel kernel;
    SizeProgram scratch;
    std::vector<DType> dtypes;          // by written buffer
    std::vector<SizeProgram> elements;  // that it spans
  };
  explicit CudaCheck(std::vector<Kernel> kernels) : kernels_(std::move(kernels)) {}

  class Run {
   public:
    Run(const std::vector<Kernel>& kernels, runtime::cuda::Device& device, const Mirror& mirror, const char* arena,
        size_t arena_bytes, const std::vector<void*>& buffers);
    ~Run();
    /// After step `s` was queued.
    void step(size_t s, const Step& step, const int64_t* symbols, const std::string& what);

   private:
    void* on_host(const void* device) const;
    bool differs(DType dtype, const void* got, const void* want, int64_t elements, const std::string& where);
    const std::vector<Kernel>& kernels_;
    runtime::cuda::Device& device_;
    struct Block {
      const char* device;
      std::vector<char> host;
    };
    std::vector<Block> blocks_;
    std::vector<void*> device_buffers_, host_buffers_;
    int agreed_ = 0, differed_ = 0;
    double worst_ = 0;
  };
  std::unique_ptr<Run> start(runtime::cuda::Device& device, const Mirror& mirror, const char* arena, size_t arena_bytes,
                             const std::vector<void*>& buffers) const {
    return std::make_unique<Run>(kernels_, device, mirror, arena, arena_bytes, buffers);
  }

 private:
  std::vector<Kernel> kernels_;
};

}  // namespace brasa::compiler
