#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "program/variants.h"

namespace brasa::eager {

/// How the variants of one signature are used, which decides whether another one is made for a class of sizes (ir::SizeClasses) or for all
/// that is left. Code for a class is faster, and so a network whose sizes stay gets all of its classes, in its first step. Where sizes change,
/// classes come one by one for a long time, and each costs a compilation: then one variant serves all others, and sizes that it has met
/// often get one of their class after all.
class SignatureUse {
 public:
  explicit SignatureUse(std::span<const uint64_t> signature) : signature_(signature.begin(), signature.end()) {}
  bool is_of(const program::VariantKey& key) const;
  /// A call with this parameter of a network; null: it has none.
  void count(const void* parameter);
  /// Whether sizes change between its calls, as far as a call with this parameter tells which none of so many variants serves.
  bool sizes_change(size_t variants, const void* parameter) const;

 private:
  static constexpr size_t kSlots = 64;
  static constexpr size_t kFew = 2, kMost = 4;  // variants
  static constexpr uint32_t kManyCalls = 32;
  static size_t slot(const void* parameter) { return reinterpret_cast<uintptr_t>(parameter) / 64 % kSlots; }

  std::vector<uint64_t> signature_;
  std::atomic<uint32_t> calls_{0};                      // up to kManyCalls
  std::array<std::atomic<const void*>, kSlots> met_{};  // parameters
};

/// What a variant of an eager computation keeps.
class SizeUse final : public program::Attachment {
 public:
  /// `for_all`: it is for no class.
  SizeUse(std::shared_ptr<SignatureUse> signature, bool for_all)
      : signature_(std::move(signature)), sizes_(for_all ? std::make_unique<Sizes>() : nullptr) {}

  /// Of a call that the variant serves. True once where it is for no class, and has met these sizes so often that code for theirs pays.
  bool count(const program::SymbolValues& symbols, const void* parameter) const;
  const std::shared_ptr<SignatureUse>& signature() const { return signature_; }

 private:
  static constexpr size_t kSlots = 64;
  static constexpr uint64_t kOften = 64;
  using Sizes = std::array<std::atomic<uint64_t>, kSlots>;  // a hash, and in the last byte how often

  std::shared_ptr<SignatureUse> signature_;
  std::unique_ptr<Sizes> sizes_;
};

/// The use of a key's variants, of which there are none yet, or some that do not serve a call.
std::shared_ptr<SignatureUse> use_of(const program::VariantKey& key, size_t& variants);

}  // namespace brasa::eager
