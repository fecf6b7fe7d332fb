#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/run/executable.h"
#include "ops/decompose.h"

namespace brasa::compiler {

/// Strict: multiplications and additions are not contracted. Default: they are. Fast: besides, a division may be a product with the
/// reciprocal, and the sign of a zero may be lost.
enum class Numbers : uint8_t { Strict, Default, Fast };
/// By its name in lower case.
Numbers numbers_named(std::string_view name);
/// What BRASA_NUMBERS says.
Numbers default_numbers();

class MeasuredWays;

struct CompilerOptions {
  std::string backend = "inductor";  // or "interpreter"
  /// Where operands and results lie and kernels run; null: the host.
  runtime::Device* device = nullptr;
  /// Schedules are made for this target and not the device's; for tests of targets that are not there.
  std::string target;
  /// With a target: generated code, for programs that run without this library, and calls of these libraries, which they open.
  bool portable = false;
  std::vector<std::string> libraries = {};
  Numbers numbers = default_numbers();
  int threads = 0;  // to schedule for; 0: get_num_threads()
  /// Of a GPU's tensors: they begin at multiples of 16 bytes. Where one does not, the graph is compiled once more, without this.
  bool aligned = true;
  /// Libraries that know several ways to compute the same measure them at the first call, and keep the fastest; the host's kernels are
  /// compiled with other schedules besides, and the fastest stays.
  bool measure = false;
  /// On a device equal products wait for each other, to be one call, for which their operands stay in memory.
  bool join_products = false;
  /// So long kernels of one graph are measured, and ways of libraries.
  double tune_seconds = 20;
  /// Of a graph that measures, on a device: given by `compile`.
  std::shared_ptr<MeasuredWays> measured_ways = nullptr;
  /// A device that can (runtime/kept_work.h) keeps the launches of a run, and gets them as one call the next time.
  bool keep_launches = false;
  /// Small and large sizes have forms of their own, told apart by facts: for single operators, of which many sizes are seen. Else what is
  /// unknown is taken for large.
  bool size_classes = false;
  /// By input, or empty: its elements are expected to stay the same from call to call, as a parameter's in inference. What is made of
  /// such inputs alone is kept, as long as Operand::content says that they are the same.
  std::vector<bool> lasting;
};

/// A value in memory of the graph's own, from the step that writes it to the last one that reads it.
struct PlannedBuffer {
  ir::Type type;
  bool prepared;
  ir::Expr offset;
  size_t first, last;
  friend bool operator==(const PlannedBuffer&, const PlannedBuffer&) = default;
};

/// What was done to a graph, for `explain`.
struct Report {
  std::string primitives;            // the graph after simplification
  std::vector<std::string> kernels;  // one line each: sort, what was fused, schedule
  int kernels_before = 0, kernels_after = 0;
  std::vector<PlannedBuffer> memory;
  ir::Expr arena_bytes = 0, prepared_bytes = 0;
  int64_t bytes_before = 0, bytes_after = 0;            // read and written, where sizes are constant
  std::vector<std::pair<std::string, double>> seconds;  // by pass
};

/// Makes a graph of operators or primitives ready to run. What it assumes of sizes goes to `facts`.
std::shared_ptr<Executable> compile(const ir::Graph& graph, ir::Facts& facts, const CompilerOptions& options = {});

/// What this device computes whole of primitives that have a composition, for graphs that will be compiled for it.
ops::TargetScope::Takes computed_whole(const runtime::Device& device);

/// What `compile` did; null for an executable of another sort.
const Report* report_of(const Executable& executable);

}  // namespace brasa::compiler
