#include "tensor/size_use.h"

#include "support/hash.h"
#include "support/words.h"

namespace brasa::eager {

bool SignatureUse::is_of(const program::VariantKey& key) const { return same_words(signature_, key.signature); }

// Written only where it changes, so that threads share the lines.
void SignatureUse::count(const void* parameter) {
  if (uint32_t n = calls_.load(std::memory_order_relaxed); n < kManyCalls)
    calls_.store(n + 1, std::memory_order_relaxed);
  if (!parameter) return;
  std::atomic<const void*>& met = met_[slot(parameter)];
  if (met.load(std::memory_order_relaxed) != parameter) met.store(parameter, std::memory_order_relaxed);
}

// A layer is called once in a step: when it comes again, its sizes are not those of its first call. What has no layer, as a product of
// activations, tells it by the number of calls or of classes.
bool SignatureUse::sizes_change(size_t variants, const void* parameter) const {
  if (variants == 0) return false;
  if (parameter) return met_[slot(parameter)].load(std::memory_order_relaxed) == parameter;
  return variants >= kMost || (variants >= kFew && calls_.load(std::memory_order_relaxed) >= kManyCalls);
}

bool SizeUse::count(const program::SymbolValues& symbols, const void* parameter) const {
  signature_->count(parameter);
  if (!sizes_) [[likely]]
    return false;
  uint64_t hash = 0;
  for (int64_t s : symbols) hash = mix(hash, static_cast<uint64_t>(s));
  constexpr uint64_t kCount = 255;
  std::atomic<uint64_t>& slot = (*sizes_)[hash / (kCount + 1) % kSlots];
  uint64_t was = slot.load(std::memory_order_relaxed), n = was & kCount;
  bool same = (was & ~kCount) == (hash & ~kCount);
  // Others that share the place take it when they come more often.
  uint64_t now = same ? was + 1 : n > 0 ? was - 1 : (hash & ~kCount) + 1;
  if (same && n >= kOften) return false;
  slot.store(now, std::memory_order_relaxed);
  return same && n + 1 == kOften;
}

std::shared_ptr<SignatureUse> use_of(const program::VariantKey& key, size_t& variants) {
  std::shared_ptr<SignatureUse> found;
  variants = 0;
  for (const program::Variant* v : program::VariantCache::get().of(key.owner)) {
    auto* use = static_cast<const SizeUse*>(v->attachment.get());
    if (!use || !use->signature()->is_of(key)) continue;
    ++variants;
    found = use->signature();
  }
  return found ? found : std::make_shared<SignatureUse>(key.signature);
}

}  // namespace brasa::eager
