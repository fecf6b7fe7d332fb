#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "program/program.h"
#include "support/mutex.h"

namespace brasa::program {

/// What an owner of variants keeps with one.
struct Attachment {
  virtual ~Attachment();
};

/// A program that is ready to run.
struct Variant {
  Program program;
  std::shared_ptr<compiler::Executable> executable;  // null where nothing is computed
  std::shared_ptr<const Attachment> attachment = nullptr;
  std::vector<bool> gives = {};  // which results there are, of one that is looked at alone

  /// Operands as the program's inputs, and for its fresh outputs.
  void run(std::span<const compiler::Operand> inputs, std::span<const compiler::Operand> outputs) const {
    SymbolValues symbols;
    program.bind(inputs, symbols);
    executable->run(symbols.data(), inputs, outputs);
  }
};

/// What is called with operands of many kinds: its variants are found by it, and go with it.
class VariantOwner {
 public:
  VariantOwner();
  ~VariantOwner();
  VariantOwner(VariantOwner&& o) noexcept : id_(o.id_), used_(o.used_.exchange(false)) {}
  VariantOwner& operator=(VariantOwner&& o) noexcept;
  /// Never given out again.
  uint64_t id() const { return id_; }

 private:
  friend class VariantCache;
  uint64_t id_;
  mutable std::atomic<bool> used_{false};  // it may have variants
};

/// An owner and what its operands are: what they have in common in all calls that a variant serves.
struct VariantKey {
  VariantKey(const VariantOwner& owner, std::span<const uint64_t> signature);

  const VariantOwner& owner;
  std::span<const uint64_t> signature;
  uint64_t hash;
};

/// The variants of all owners. Reading takes no lock; what is found lives at least as long as the caller's Epoch::Reading. Beyond
/// the limit those go that were used least recently.
class VariantCache {
 public:
  static VariantCache& get();

  /// The variant of this key whose conditions hold for these operands, or null; `symbols` are then theirs.
  const Variant* find(const VariantKey& key, std::span<const compiler::Operand> operands, SymbolValues& symbols);
  const Variant* insert(const VariantKey& key, Variant variant);
  /// For each variant of this key a condition that does not hold for these operands.
  std::vector<ir::Fact> failed(const VariantKey& key, std::span<const compiler::Operand> operands) const;
  /// All of an owner, the oldest first.
  std::vector<const Variant*> of(const VariantOwner& owner) const;
  /// A variant that was found earlier is used again. It is still there if as many were `evicted` as then, and the caller was in an
  /// Epoch::Reading before it asked.
  void use(const Variant& variant);

  size_t size() const { return size_.load(std::memory_order_relaxed); }
  /// At least 16.
  void set_limit(size_t variants);
  /// Those that went, for any reason.
  uint64_t evicted() const { return evicted_.load(std::memory_order_relaxed); }

 private:
  friend class VariantOwner;
  static constexpr size_t kBuckets = 1 << 14;
  VariantCache();
  struct Entry;
  using Unlinked = std::vector<std::unique_ptr<Entry>>;
  Entry* first(uint64_t hash) const { return buckets_[hash % kBuckets].load(std::memory_order_acquire); }
  template <class Goes>
  Unlinked unlink(Goes goes);
  Unlinked beyond_limit();
  void forget(const VariantOwner& owner);
  static void free(Unlinked unlinked);

  std::unique_ptr<std::atomic<Entry*>[]> buckets_;
  std::atomic<size_t> size_{0};
  std::atomic<uint64_t> clock_{1}, evicted_{0};  // the clock counts insertions
  size_t limit_;
  mutable Mutex mutex_;  // of writers
};

}  // namespace brasa::program
