#pragma once

#include "compiler/compile.h"
#include "compiler/kernels/kernels.h"
#include "compiler/libraries/step.h"
#include "compiler/run/plan.h"
#include "compiler/run/size_program.h"

namespace brasa::compiler {

/// One call of a kernel, or of a library's function.
struct Step {
  LoadedKernel kernel;
  std::vector<int> buffers;     // positions in Compiled's buffers; what it only reads first
  size_t first_written = 0;     // of `buffers`
  std::vector<uint32_t> sizes;  // symbols that the kernel takes, in order
  SizeProgram count, scratch;
  int64_t grain = 1;
  int64_t threads = 1;                         // GPU: of a block
  std::shared_ptr<const LibraryStep> library;  // instead of a kernel
  size_t group = 0;                            // of Report::kernels
};

/// Steps one after the other; those from `begin` to `end` touch nothing of each other's and share one start of threads.
struct Batch {
  size_t begin, end;
};

/// Runs on the CPU; CompiledCuda on a GPU.
class Compiled : public Executable {
 public:
  struct Check {
    size_t after;
    int buffer;
    std::string message;
  };
  Compiled(const ir::Graph& graph, std::vector<Place> buffers, std::vector<Step> steps, std::vector<Batch> batches,
           std::vector<Check> checks, ir::Expr arena_bytes, Report report);

  void run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const override;
  /// As `run`; `seconds[s]` becomes the time of step s.
  void run_timed(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                 std::vector<double>& seconds) const;
  const std::vector<Step>& steps() const { return steps_; }
  const std::vector<Batch>& batches() const { return batches_; }
  const std::vector<Check>& checks() const { return checks_; }
  std::string text() const override { return text_; }
  const Report& report() const { return report_; }

 protected:
  /// `seconds`, where given, has room for each step's time.
  virtual void execute(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                       std::vector<double>* seconds) const;
  void run_step(const Step& s, void* const* buffers, const int64_t* symbols) const;

  struct Buffer {
    Place::Kind kind;
    int index;
    SizeProgram offset;
  };
  std::vector<Buffer> buffers_;
  std::vector<Step> steps_;
  std::vector<Batch> batches_;
  std::vector<Check> checks_;
  SizeProgram arena_bytes_;

 private:
  void run_batch(const Batch& b, void* const* buffers, const int64_t* symbols) const;
  std::string text_;
  Report report_;
};

}  // namespace brasa::compiler
