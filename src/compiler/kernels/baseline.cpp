#include "compiler/kernels/baseline.h"

#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "compiler/kernels/pack.h"
#include "compiler/loops/ops.h"
#include "support/error.h"
#include "support/lazy.h"
#include "support/mutex.h"
#include "support/settings.h"

namespace brasa::compiler {
namespace {

enum class Tiers : uint8_t { Both, Baseline, Optimized };

Tiers tiers() {
  static constinit Lazy<Tiers> chosen([] {
    const char* given = environment("BRASA_TIERS");
    std::string_view name = given ? given : "both";
    BRASA_CHECK(name == "both" || name == "baseline" || name == "optimized", "BRASA_TIERS is '", name,
                "': both, baseline or optimized was expected");
    return name == "both" ? Tiers::Both : name == "baseline" ? Tiers::Baseline : Tiers::Optimized;
  });
  return *chosen;
}

// What has run for this part of what optimizing takes is likely to go on: loops of training do.
constexpr double kPatience = 4;

// What was optimized so far, in KernelCost::code, and before all, as if it had been here, what four kernels took on a processor of 2023.
std::atomic<double> g_code{500};
std::atomic<int64_t> g_nanoseconds{40000000};

// Nanoseconds of processor time.
double cost_of_optimizing(double code) {
  if (!optimizes_later()) return std::numeric_limits<double>::infinity();
  return static_cast<double>(g_nanoseconds.load(std::memory_order_relaxed)) / g_code.load(std::memory_order_relaxed) *
         code;
}

}  // namespace

bool has_baseline(std::string_view text, std::string_view target) {
  if (tiers() == Tiers::Optimized || recording_pack()) return false;
  if (!target.starts_with("x86-64") || target.ends_with(";fast")) return false;
  for (LoopOp op : {LoopOp::Scan, LoopOp::PairProduct, LoopOp::QuadProduct, LoopOp::TileProduct})
    if (text.find(loop_op(op)->name()) != text.npos) return false;
  // Updates of one element by several lanes.
  return text.find("combine=\"") == text.npos;
}

bool optimizes_later() { return tiers() != Tiers::Baseline; }

bool is_quick(const KernelCost& cost) {
  constexpr double kOperation = 1, kPart = 0.5;  // nanoseconds of an operation of baseline code
  return kOperation * cost.run < kPart * cost_of_optimizing(cost.code);
}

void note_cost(std::string_view target, std::span<const std::string> texts, int64_t nanoseconds) {
  if (!target.starts_with("x86-64") || target.ends_with(";baseline")) return;
  double code = 0;
  for (const std::string& text : texts) code += code_of(text);
  g_code.fetch_add(code, std::memory_order_relaxed);
  g_nanoseconds.fetch_add(nanoseconds, std::memory_order_relaxed);
}

bool BaselineKernel::due() const {
  return !optimized() && !asked_.load(std::memory_order_relaxed) &&
         static_cast<double>(ran_.load(std::memory_order_relaxed)) >= cost_of_optimizing(size_) / kPatience;
}

std::shared_ptr<BaselineKernel> baseline_kernel(const std::string& text, double size, const std::string& options,
                                                runtime::Device& device, const LoadedKernel& code) {
  // A kernel keeps its code, so that no other one has its address.
  static constinit Mutex mutex;
  static constinit Lazy<std::map<runtime::Function, std::weak_ptr<BaselineKernel>>> kernels;
  static size_t sweep_at = 256;
  std::lock_guard lock(mutex);
  if (kernels->size() >= sweep_at) {
    std::erase_if(*kernels, [](const auto& k) { return k.second.expired(); });
    sweep_at = 2 * kernels->size() + 256;
  }
  std::weak_ptr<BaselineKernel>& known = (*kernels)[code.function];
  std::shared_ptr<BaselineKernel> kernel = known.lock();
  if (!kernel) {
    kernel = std::make_shared<BaselineKernel>(text, size, options, device, code.code, code.function);
    known = kernel;
  }
  return kernel;
}

}  // namespace brasa::compiler
