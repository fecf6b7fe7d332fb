// The part of a session that lets a device begin before a call is recorded.
#include <atomic>
#include <utility>

#include "capture/session.h"
#include "tensor/execute.h"

namespace brasa::capture {

// A trace that was left so often is not run ahead.
constexpr int kMostMisses = 3;

// What needs no more than the inputs so far runs while the rest is recorded, in the hope that the call goes on as the last one did.
void Session::begin_ahead() {
  give_up_ahead();
  if (!path_.started()) return;
  ahead_of_ = &path_.trace();
  if (!std::atomic_ref(ahead_of_->ahead.allowed).load(std::memory_order_relaxed)) return;
  std::lock_guard lock(state_.mutex);
  if (auto last = ahead_of_->ahead.executable.lock()) ahead_ = compiler::run_ahead(std::move(last));
}

void Session::run_ahead(const Tensor& input) {
  if (&path_.trace() != ahead_of_) return give_up_ahead();
  compiler::Operand operand = eager::operand_of(input);
  if (!ahead_->executable().lasting().empty()) operand.content = impl_of(input)->storage->content();
  ahead_->add(operand, impl_of(input)->device());
}

void Session::give_up_ahead() {
  if (!ahead_) return;
  ahead_ = nullptr;
  std::lock_guard lock(state_.mutex);
  if (++ahead_of_->ahead.misses == kMostMisses)
    std::atomic_ref(ahead_of_->ahead.allowed).store(false, std::memory_order_relaxed);
}

void Session::run(const program::Variant& variant, const program::SymbolValues& symbols,
                  std::span<const compiler::Operand> inputs, std::span<const compiler::Operand> outputs) {
  const compiler::Executable* executable = variant.executable.get();
  if (ahead_ && &ahead_->executable() == executable)
    return std::exchange(ahead_, nullptr)->finish(symbols.data(), inputs, outputs);
  give_up_ahead();
  executable->run(symbols.data(), inputs, outputs);
  Trace::Ahead& next = path_.trace().ahead;
  if (std::atomic_ref(next.last).exchange(executable, std::memory_order_relaxed) == executable) return;
  bool can = path_.binding().symbols.empty() && compiler::run_ahead(variant.executable);
  std::lock_guard lock(state_.mutex);
  next.executable = variant.executable;
  std::atomic_ref(next.allowed).store(can && next.misses < kMostMisses, std::memory_order_relaxed);
}

}  // namespace brasa::capture
