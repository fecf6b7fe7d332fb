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

/// What making optimized code of this text takes, about, in nanoseconds.
int64_t cost_of_optimizing(std::string_view text);

/// A kernel that began with baseline code. When its runs have taken a quarter of what optimizing takes it is due, and whoever ran it
/// compiles it again. Calls of other threads go on with the code that they began with, which stays.
class BaselineKernel {
 public:
  BaselineKernel(std::string text, std::string options, runtime::Device& device,
                 std::shared_ptr<const runtime::Module> code, runtime::Function function);
  runtime::Function function() const { return function_.load(std::memory_order_acquire); }
  bool optimized() const { return optimized_.load(std::memory_order_acquire); }
  /// A run took so long.
  void ran(int64_t nanoseconds) { left_.fetch_sub(nanoseconds, std::memory_order_relaxed); }
  bool due() const { return !optimized() && left_.load(std::memory_order_relaxed) <= 0; }
  /// Whether it will be due when as much again has run as has until now.
  bool half_due() const { return !optimized() && left_.load(std::memory_order_relaxed) <= budget_ / 2; }

 private:
  friend void optimize(std::span<const std::shared_ptr<BaselineKernel>> kernels);
  const std::string text_, options_;
  runtime::Device& device_;
  const std::shared_ptr<const runtime::Module> baseline_;
  std::shared_ptr<const runtime::Module> code_;  // written once, before `function_`
  std::atomic<runtime::Function> function_;
  std::atomic<bool> optimized_{false}, claimed_{false};
  const int64_t budget_;
  std::atomic<int64_t> left_;
};

/// The one of this code in this process, made where there is none yet.
std::shared_ptr<BaselineKernel> baseline_kernel(const std::string& text, const std::string& options,
                                                runtime::Device& device, const LoadedKernel& code);

/// Compiles these once more, all at once, and runs the optimized code from now on. What another thread compiles just now is left to it.
void optimize(std::span<const std::shared_ptr<BaselineKernel>> kernels);

}  // namespace brasa::compiler
