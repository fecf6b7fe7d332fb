#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "program/program.h"

namespace brasa::program {

/// A program that is ready to run.
struct Variant {
  Program program;
  std::shared_ptr<compiler::Executable> executable;  // null where nothing is computed

  /// Operands as the program's inputs, and for its fresh outputs.
  void run(std::span<const compiler::Operand> inputs, std::span<const compiler::Operand> outputs) const {
    SymbolValues symbols;
    program.bind(inputs, symbols);
    executable->run(symbols.data(), inputs, outputs);
  }
};

/// What is called with any inputs has a variant for each signature of them, all in here. Reading takes no lock. Beyond the limit those
/// go that were used least recently.
class VariantCache {
 public:
  static VariantCache& get();

  /// The variant of `owner` for this signature whose conditions hold for these operands, or null; `symbols` are then theirs. It
  /// lives at least as long as the caller's Epoch::Reading.
  const Variant* find(const void* owner, std::span<const uint64_t> signature, uint64_t hash,
                      std::span<const compiler::Operand> operands, SymbolValues& symbols);
  const Variant* insert(const void* owner, std::span<const uint64_t> signature, uint64_t hash, Variant variant);

  /// A variant that was found earlier is used again. It is still there if as many were `evicted` as then, and the caller was in an
  /// Epoch::Reading before it asked.
  void use(const Variant& variant);

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// At least 16.
  void set_limit(size_t variants);
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBuckets = 1 << 14;
  VariantCache();
  struct Entry;
  std::atomic<Entry*>& bucket(uint64_t hash) { return buckets_[hash % kBuckets]; }
  void evict();

  std::unique_ptr<std::atomic<Entry*>[]> buckets_;
  std::atomic<size_t> size_{0};
  std::atomic<uint64_t> clock_{1}, evicted_{0};  // the clock counts insertions
  size_t limit_;
  std::mutex mutex_;  // of writers
};

}  // namespace brasa::program
