#pragma once

#include <algorithm>
#include <atomic>
#include <functional>

#include "compiler/compile.h"
#include "compiler/kernels/optimizer.h"
#include "compiler/libraries/step.h"
#include "compiler/run/ahead.h"
#include "compiler/run/kept.h"
#include "compiler/run/memory.h"
#include "compiler/run/plan.h"
#include "compiler/run/prepared.h"
#include "compiler/run/size_program.h"
#include "runtime/device.h"
#include "support/mutex.h"
#include "support/small_vector.h"

namespace brasa::compiler {

/// One call of a kernel, or of a library's function.
struct Step {
  LoadedKernel kernel;
  size_t code = 0;           // the kernel among the graph's distinct ones
  std::vector<int> buffers;  // positions in CompiledGraph's buffers; what it only reads first
  size_t first_written = 0;  // of `buffers`
  struct Number {
    int input;  // of the graph, in the host's memory
    size_t offset, bytes;
  };
  std::vector<Number> numbers;
  std::vector<uint32_t> sizes;  // symbols that the kernel takes, in order
  SizeProgram count, scratch;
  int64_t grain = 1;
  int64_t threads = 1;                         // GPU: of a block
  std::shared_ptr<const LibraryStep> library;  // instead of a kernel
  std::shared_ptr<const DeviceCall> call;      // instead of both
  int64_t repeats = 1;                         // of the call, with tensors so many bytes apart
  std::vector<int64_t> apart;
  runtime::Function function() const { return kernel.baseline ? kernel.baseline->function() : kernel.function; }
  size_t group = 0;                      // of the plan
  SizeProgram bytes;                     // that it reads and writes
  SizeProgram elements, results, steps;  // of a kernel: see Work
  double flops(const int64_t* symbols) const;
};

/// Steps one after the other; those from `begin` to `end` touch nothing of each other's and share one start of threads, or are one launch of
/// a kernel that is made for so many.
struct Batch {
  size_t begin, end;
};

/// A compiled graph on a device. On the host steps run at once; elsewhere they are given to this thread's stream, and what a check
/// finds is raised when somebody waits.
class CompiledGraph final : public Executable {
 public:
  struct Check {
    size_t after;
    int buffer;
    std::string message;
  };
  struct Parts {
    std::vector<Place> buffers;
    std::vector<Step> steps;
    std::vector<Batch> batches;
    std::vector<Check> checks;
    LoadedKernel note;  // writes the first failed check's number into the device's word
    /// Checks that one launch of it looks at.
    size_t noted_together() const { return std::min<size_t>(checks.size(), 32); }
    ir::Expr arena_bytes = 0;
    size_t prepared = 0;  // of the batches, see Plan::prepared
    ir::Expr prepared_bytes = 0;
    PreparedValues::Sources prepared_of;
    std::vector<bool> by_value;
    bool ahead = true;  // see RunAhead
    bool keep = false;  // see KeptRun
    /// The same for operands that do not begin at multiples of 16 bytes, where kernels rely on that.
    std::function<std::shared_ptr<Executable>()> unaligned;
    uint32_t first_defined = 0;  // see DefinedSymbols
    std::vector<SizeProgram> defined;
    Report report;
  };
  CompiledGraph(const ir::Graph& graph, runtime::Device& device, Parts parts);

  void run(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const override;
  std::span<const uint32_t> lasting() const override { return parts_.prepared_of.inputs; }
  bool optimize(bool wait) const override;
  /// How many of its kernels still run baseline code.
  size_t baseline_kernels() const;
  const std::vector<Step>& steps() const { return parts_.steps; }
  const std::vector<Batch>& batches() const { return parts_.batches; }
  const std::vector<Check>& checks() const { return parts_.checks; }
  const Report& report() const { return parts_.report; }

 private:
  class Ahead;
  class KeptAhead;
  class BaselineTime;
  friend std::unique_ptr<RunAhead> run_ahead(std::shared_ptr<const Executable> executable);
  struct Buffer {
    Place::Kind kind;
    int index;
    SizeProgram offset;
  };
  // What steps need of one run.
  struct Run {
    const int64_t* symbols;
    std::span<const Operand> inputs;
    void* const* buffers;
    runtime::Stream stream;
    KeptRun* kept = nullptr;  // where launches go instead
  };
  using Slots = SmallVector<runtime::Slot, 24>;

  /// Adds those of one call.
  static void add_slots(const Step& s, const Run& r, Slots& slots);
  /// Of these, what follows the addresses: numbers and sizes.
  static void add_values(const Step& s, std::span<const Operand> inputs, const int64_t* symbols, Slots& slots);
  /// A run of this batch took so long.
  void note_time(const Batch& b, int64_t nanoseconds, int64_t runs) const;
  /// Where some of it has baseline code, when a run begins; else 0.
  int64_t begin_run() const;
  /// After a run: what has run long enough with baseline code is optimized soon.
  void optimize_due(int64_t begin) const;
  /// Those of a call, and behind them those that are defined.
  using Symbols = SmallVector<int64_t, 32>;
  const int64_t* with_defined(const int64_t* symbols, Symbols& all) const;
  /// One kernel, without memory of its own: most eager calls.
  void run_single(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const;
  /// For operands that lie anywhere; made when it is needed.
  const Executable& unaligned() const;
  void run_batch(const Batch& b, const Run& r) const;
  void launch(const Batch& b, const Run& r) const;
  runtime::Launch launch_of(const Step& s, const Slots& slots, size_t calls, const int64_t* symbols) const;
  void give(const runtime::Launch& launch, const Run& r) const {
    r.kept ? r.kept->launch(launch, r.stream) : device_.launch(launch, r.stream);
  }
  void run_library(const Step& s, const Run& r) const;
  /// Looks at those of the host behind a step.
  void check(size_t after, const Run& r) const;
  /// Lets the device look at the others.
  void note_checks(const Run& r) const;
  bool in_host_memory(int buffer) const;
  /// Whether this graph's own kernels take what begins there, and all of these.
  bool takes_address(const void* data) const {
    return !parts_.unaligned || reinterpret_cast<uintptr_t>(data) % kAlignment == 0;
  }
  bool takes(std::span<const Operand> inputs, std::span<const Operand> outputs) const;
  void find_buffers(std::byte* arena, const int64_t* symbols, std::span<const Operand> inputs,
                    std::span<const Operand> outputs, void** buffers, const std::byte* prepared = nullptr) const;
  /// The batches from the n-th one on.
  void run_from(size_t n, const Memory& arena, const int64_t* symbols, std::span<const Operand> inputs,
                std::span<const Operand> outputs, const std::byte* prepared = nullptr) const;
  void run_prepared(const Memory& arena, const int64_t* symbols, std::span<const Operand> inputs,
                    std::span<const Operand> outputs) const;
  /// For the next run, behind one that was given it.
  void keep_prepared(std::shared_ptr<PreparedValues::Made> made, const int64_t* symbols,
                     std::span<const Operand> inputs) const;
  void run_steps(size_t n, const Run& r) const;
  void find_first_kernels(std::initializer_list<size_t> starts);
  void plan_keeping();
  void plan_first_part();
  /// False, with nothing done, where this run is not kept.
  bool run_kept(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                const std::optional<KeptRun::Begun>& begun) const;
  void add_addresses(std::span<const Operand> inputs, Slots& slots) const;
  Slots varying_slots(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs) const;
  void copy_moved(KeptRun& kept, std::span<const int> buffers, std::span<const Operand> inputs,
                  std::span<const Operand> outputs) const;
  size_t inputs_needed(const Step& s) const;
  void plan_ahead();
  /// Whether the i-th input can be used before all are known.
  bool takes_ahead(size_t i, const Operand& input, const runtime::Device& place) const;

  void run_with_defined(const int64_t* symbols, std::span<const Operand> inputs, std::span<const Operand> outputs,
                        const std::optional<KeptRun::Begun>& begun = {}) const;

  static constexpr uintptr_t kAlignment = 16;

  runtime::Device& device_;
  Parts parts_;
  std::vector<Buffer> buffers_;
  SizeProgram arena_bytes_, prepared_bytes_;
  mutable PreparedValues prepared_;
  // Of the first batches, those that may run ahead: how many of the first inputs they and those before them need.
  std::vector<size_t> needs_;
  std::vector<int> input_buffers_;  // by input; -1: nothing reads it
  bool single_;
  std::vector<std::shared_ptr<BaselineKernel>> baseline_;  // those that began with baseline code, each once
  mutable std::atomic<bool> all_optimized_;
  mutable std::atomic<uint32_t> small_{0};  // runs of small batches with baseline code
  /// Where kernels read what nobody writes before others have ended (Group::unwritten): they wait for all that came before the run, which may
  /// begin behind what is prepared.
  std::vector<const Step*> first_kernels_;
  runtime::KeepsWork* keeper_ = nullptr;  // null: launches are not kept
  std::vector<bool> same_;                // by batch: all of its slots are the same in each kept run
  std::vector<const Check*> noted_;       // those that a device looks at
  mutable KeptRuns kept_;
  mutable Mutex unaligned_mutex_;
  mutable std::shared_ptr<Executable> unaligned_;
};

}  // namespace brasa::compiler
