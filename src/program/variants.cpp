#include "program/variants.h"

#include <algorithm>
#include <cstdlib>

#include "support/epoch.h"
#include "support/words.h"

namespace brasa::program {
namespace {

constexpr size_t kLimit = 8192, kLeast = 16;

}  // namespace

struct VariantCache::Entry : Variant {
  const void* owner;
  uint64_t hash;
  std::vector<uint64_t> signature;
  mutable std::atomic<uint64_t> used{0};
  std::atomic<Entry*> next{nullptr};
};

VariantCache& VariantCache::get() {
  static auto* cache = new VariantCache;
  return *cache;
}

VariantCache::VariantCache() : buckets_(new std::atomic<Entry*>[kBuckets]()), limit_(kLimit) {}

void VariantCache::set_limit(size_t variants) {
  std::lock_guard lock(mutex_);
  limit_ = std::max(variants, kLeast);
  if (size() > limit_) evict();
}

const Variant* VariantCache::find(const void* owner, std::span<const uint64_t> signature, uint64_t hash,
                                  std::span<const compiler::Operand> operands, SymbolValues& symbols) {
  for (Entry* v = bucket(hash).load(std::memory_order_acquire); v; v = v->next.load(std::memory_order_acquire)) {
    if (v->hash != hash || v->owner != owner || !same_words(v->signature, signature)) continue;
    v->program.bind(operands, symbols);
    if (!v->program.conditions.hold(symbols.data())) continue;
    use(*v);
    return v;
  }
  return nullptr;
}

void VariantCache::use(const Variant& variant) {
  const auto& v = static_cast<const Entry&>(variant);
  // Written only when it changes, so that threads share the line.
  uint64_t now = clock_.load(std::memory_order_relaxed);
  if (v.used.load(std::memory_order_relaxed) != now) v.used.store(now, std::memory_order_relaxed);
}

const Variant* VariantCache::insert(const void* owner, std::span<const uint64_t> signature, uint64_t hash,
                                    Variant variant) {
  std::lock_guard lock(mutex_);
  auto* v = new Entry{std::move(variant), owner, hash, {signature.begin(), signature.end()}};
  v->used = clock_.fetch_add(1) + 1;
  std::atomic<Entry*>& first = bucket(hash);
  v->next.store(first.load(std::memory_order_relaxed), std::memory_order_relaxed);
  first.store(v, std::memory_order_release);
  if (size_.fetch_add(1) + 1 > limit_) evict();
  return v;
}

// An eighth goes at a time, so that eviction is rare.
void VariantCache::evict() {
  std::vector<uint64_t> times;
  for (size_t b = 0; b < kBuckets; ++b)
    for (Entry* v = buckets_[b].load(std::memory_order_relaxed); v; v = v->next.load(std::memory_order_relaxed))
      times.push_back(v->used.load(std::memory_order_relaxed));
  size_t keep = limit_ - limit_ / 8, go = times.size() - std::min(times.size(), keep);
  if (go == 0) return;
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(go) - 1, times.end());
  uint64_t last = times[go - 1];
  auto unlinked = std::make_shared<std::vector<std::unique_ptr<Entry>>>();
  for (size_t b = 0; b < kBuckets; ++b)
    for (std::atomic<Entry*>* at = &buckets_[b]; Entry* v = at->load(std::memory_order_relaxed);) {
      if (v->used.load(std::memory_order_relaxed) > last || unlinked->size() == go) {
        at = &v->next;
        continue;
      }
      // A reader that stands on it still finds its way on.
      at->store(v->next.load(std::memory_order_relaxed), std::memory_order_release);
      unlinked->emplace_back(v);
    }
  size_ -= unlinked->size();
  evicted_ += unlinked->size();  // before they are retired: who still counts fewer keeps them
  Epoch::retire([unlinked] {});
}

}  // namespace brasa::program
