#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "compiler/kernels/kernels.h"

namespace brasa::compiler {

/// Whether a kernel may begin with baseline code, which is made in a tenth of the time, runs many times slower and gives the same bits:
/// on x86 processors, but for what adds in another order without vectors.
bool has_baseline(std::string_view text, std::string_view target);
/// Whether what has baseline code is optimized later.
bool optimizes_later();

/// Whether a run with baseline code is expected to take less than half of the time that optimizing takes.
bool is_quick(const KernelCost& cost);
/// Making code of these texts for a target took so long. What optimizing takes is estimated by what this process has optimized so far.
void note_cost(std::string_view target, std::span<const std::string> texts, int64_t nanoseconds);

/// A kernel that began with baseline code. When its runs have taken a quarter of what optimizing takes it is due (optimizer.h). Calls go on
/// with the code that they began with, which stays.
class BaselineKernel {
 public:
  BaselineKernel(std::string text, double size, std::string options, runtime::Device& device,
                 std::shared_ptr<const runtime::Module> code, runtime::Function function)
      : text_(std::move(text)),
        size_(size),
        options_(std::move(options)),
        device_(device),
        baseline_(std::move(code)),
        function_(function) {}
  runtime::Function function() const { return function_.load(std::memory_order_acquire); }
  bool optimized() const { return optimized_.load(std::memory_order_acquire); }
  /// A run took so long, and stands for as many that were not timed, itself counted.
  void ran(int64_t nanoseconds, int64_t runs = 1) {
    last_.store(nanoseconds, std::memory_order_relaxed);
    ran_.fetch_add(nanoseconds * runs, std::memory_order_relaxed);
  }
  /// Whether a run takes much longer than asking for the time, as far as that is known: then each is timed.
  bool is_long() const { return last_.load(std::memory_order_relaxed) >= kLong; }
  bool due() const;
  /// Optimizing failed, and it has not run for as long again.
  bool failed() const { return ran_.load(std::memory_order_relaxed) < 0; }

 private:
  friend class Optimizer;
  enum class State : uint8_t { Baseline, Queued, Compiling, Optimized };
  static constexpr int64_t kLong = 20000;  // nanoseconds

  const std::string text_;
  const double size_;  // KernelCost::code
  const std::string options_;
  runtime::Device& device_;
  const std::shared_ptr<const runtime::Module> baseline_;
  std::atomic<runtime::Function> function_;
  std::atomic<bool> optimized_{false}, asked_{false};
  std::atomic<int64_t> ran_{0};
  std::atomic<int64_t> last_{kLong};  // the run that was timed last; the first one is
  // Under the optimizer's mutex.
  std::shared_ptr<const runtime::Module> code_;
  State state_ = State::Baseline;
};

/// The one of this code in this process, made where there is none yet.
std::shared_ptr<BaselineKernel> baseline_kernel(const std::string& text, double size, const std::string& options,
                                                runtime::Device& device, const LoadedKernel& code);

}  // namespace brasa::compiler
