#pragma once

#include "compiler/run/compiled.h"
#include "runtime/cuda/device.h"

namespace brasa::compiler {

class CudaCheck;

/// A compiled graph whose kernels run on a GPU.
class CompiledCuda final : public Compiled {
 public:
  /// `check` may be null.
  CompiledCuda(const ir::Graph& graph, std::vector<Place> buffers, std::vector<Step> steps, std::vector<Check> checks,
               ir::Expr arena_bytes, Report report, runtime::cuda::Device& device, std::unique_ptr<CudaCheck> check);
  ~CompiledCuda() override;

 private:
  void execute(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
               std::vector<double>* seconds) const override;
  void launch(const Step& s, void* const* buffers, const int64_t* symbols) const;
  void library_on_host(const Step& s, void* const* buffers, const int64_t* symbols) const;

  runtime::cuda::Device& device_;
  std::vector<bool> written_;  // by input
  std::unique_ptr<CudaCheck> check_;
};

}  // namespace brasa::compiler
