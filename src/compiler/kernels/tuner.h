#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <brasa/progress.h>

#include "compiler/lowering/lower.h"
#include "compiler/passes/passes.h"
#include "compiler/run/memory.h"
#include "compiler/schedules/schedule.h"
#include "ir/facts.h"
#include "runtime/device.h"

namespace brasa::compiler {

struct LoadedKernel;

/// What sizes are in the example call, where symbols may be defined beside the graph: hints with their numbers, if there are some, are of
/// others.
class ExampleSizes {
 public:
  /// What is given must outlive it; null: no symbols are defined.
  ExampleSizes(const ir::Facts& facts, const DefinedSymbols* defined);

  bool known(const ir::Expr& e) const;
  int64_t value(const ir::Expr& e) const;

 private:
  const ir::Facts& facts_;
  uint32_t first_;                              // defined symbol
  std::vector<std::optional<int64_t>> values_;  // of defined ones
};

/// A group with memory of its own for its tensors, of the sizes of the example call, on the host.
class Trial {
 public:
  /// `options` as load_kernels takes them. What is given must outlive it.
  Trial(const Group& group, runtime::Device& device, std::string options, const ExampleSizes& sizes);

  /// False where sizes are not known, something has no elements, or there would be too much memory.
  bool prepare();
  /// Of an input, or after them of an output.
  std::span<std::byte> tensor(size_t i) { return {memory_[i].data, memory_[i].bytes}; }
  /// Seconds that the group takes by each schedule, the least of several runs.
  std::vector<double> measure(std::span<const Schedule> schedules);

 private:
  using Clock = std::chrono::steady_clock;
  struct Call {
    runtime::Launch launch;
    std::vector<runtime::Slot> slots;
  };
  bool add_tensor(ir::Value v, const std::vector<ir::Expr>& strides, bool input);
  Call call(const Lowered& lowered, const LoadedKernel& kernel) const;
  double run(std::vector<Call>& calls) const;

  const Group& group_;
  runtime::Device& device_;
  std::string options_;
  const ExampleSizes& sizes_;
  std::vector<Memory> memory_;
};

/// Measures the candidates of groups' schedules on the host, and keeps the choice in the disk cache for each model of processor and number of
/// threads.
class Tuner {
 public:
  /// For so many groups, on a bar of progress. After `seconds` all that is left keeps the schedule it has.
  Tuner(runtime::Device& device, const Machine& machine, std::string options, ExampleSizes sizes, double seconds,
        size_t groups);

  /// `key`: what tells the group from others.
  Schedule best(const Group& group, const std::string& key, Schedule first);

  /// How many groups were measured in this process, for tests.
  static int64_t measured();

 private:
  using Clock = std::chrono::steady_clock;
  Schedule search(const Group& group, Schedule first) const;

  runtime::Device& device_;
  const Machine& machine_;
  std::string options_;
  ExampleSizes sizes_;
  Clock::time_point end_;
  ProgressBar progress_;
};

}  // namespace brasa::compiler
