#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "compiler/run/executable.h"
#include "program/conditions.h"

namespace brasa::program {

/// A program compiled for one signature of its inputs, right where its conditions hold.
struct Variant {
  Conditions conditions;
  std::shared_ptr<compiler::Executable> executable;  // null where nothing is computed
  /// Of each result: its position among the executable's outputs, kAbsent, or kAlias + the input that it is.
  static constexpr int kAbsent = -1, kAlias = 1 << 20;
  std::vector<int> places;
  size_t outputs = 0;  // of the executable

 private:
  friend class VariantCache;
  const void* owner = nullptr;
  uint64_t hash = 0;
  std::vector<uint64_t> signature;
  std::atomic<uint64_t> used{0};
  std::atomic<Variant*> next{nullptr};
};

/// The variants of all programs. Reading takes no lock. Beyond the limit those go that were used least recently.
class VariantCache {
 public:
  static VariantCache& get();

  /// The variant of `owner` for this signature whose conditions hold for the symbols, or null. It lives at least as long as the
  /// caller's Epoch::Reading.
  Variant* find(const void* owner, std::span<const uint64_t> signature, uint64_t hash, const int64_t* symbols);
  Variant* insert(const void* owner, std::span<const uint64_t> signature, uint64_t hash, std::unique_ptr<Variant> v);

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// At least 16.
  void set_limit(size_t variants);
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBuckets = 1 << 14;
  VariantCache();
  std::atomic<Variant*>& bucket(uint64_t hash) { return buckets_[hash % kBuckets]; }
  void evict();

  std::unique_ptr<std::atomic<Variant*>[]> buckets_;
  std::atomic<size_t> size_{0};
  std::atomic<uint64_t> clock_{1}, evicted_{0};  // the clock counts insertions
  size_t limit_;
  std::mutex mutex_;  // of writers
};

}  // namespace brasa::program
