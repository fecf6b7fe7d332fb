#include "program/variants.h"

#include <algorithm>

#include "support/epoch.h"
#include "support/hash.h"
#include "support/lazy.h"
#include "support/words.h"

namespace brasa::program {
namespace {

constexpr size_t kLimit = 8192, kLeast = 16;

}  // namespace

Attachment::~Attachment() = default;

VariantOwner::VariantOwner() {
  static std::atomic<uint64_t> last{0};
  id_ = last.fetch_add(1, std::memory_order_relaxed) + 1;
}

VariantOwner::~VariantOwner() {
  if (used_) VariantCache::get().forget(*this);
}

VariantOwner& VariantOwner::operator=(VariantOwner&& o) noexcept {
  if (this != &o) {
    if (used_) VariantCache::get().forget(*this);
    id_ = o.id_;
    used_ = o.used_.exchange(false);
  }
  return *this;
}

VariantKey::VariantKey(const VariantOwner& o, std::span<const uint64_t> words)
    : owner(o), signature(words), hash(o.id()) {
  for (uint64_t w : words) hash = mix(hash, w);
}

struct VariantCache::Entry : Variant {
  uint64_t owner, hash, made;
  std::vector<uint64_t> signature;
  mutable std::atomic<uint64_t> used;
  std::atomic<Entry*> next{nullptr};

  bool is_of(const VariantKey& key) const {
    return hash == key.hash && owner == key.owner.id() && same_words(signature, key.signature);
  }
};

VariantCache& VariantCache::get() {
  static constinit Lazy<VariantCache> cache([] { return VariantCache(); });
  return *cache;
}

VariantCache::VariantCache() : buckets_(new std::atomic<Entry*>[kBuckets]()), limit_(kLimit) {}

void VariantCache::set_limit(size_t variants) {
  Unlinked go;
  {
    std::lock_guard lock(mutex_);
    limit_ = std::max(variants, kLeast);
    go = beyond_limit();
  }
  free(std::move(go));
}

const Variant* VariantCache::find(const VariantKey& key, std::span<const compiler::Operand> operands,
                                  SymbolValues& symbols) {
  for (Entry* v = first(key.hash); v; v = v->next.load(std::memory_order_acquire)) {
    if (!v->is_of(key)) continue;
    v->program.bind(operands, symbols);
    if (!v->program.conditions.hold(symbols.data())) continue;
    use(*v);
    return v;
  }
  return nullptr;
}

std::vector<ir::Fact> VariantCache::failed(const VariantKey& key, std::span<const compiler::Operand> operands) const {
  std::vector<ir::Fact> out;
  SymbolValues symbols;
  for (Entry* v = first(key.hash); v; v = v->next.load(std::memory_order_acquire)) {
    if (!v->is_of(key)) continue;
    v->program.bind(operands, symbols);
    if (const ir::Fact* f = v->program.conditions.failed(symbols.data())) out.push_back(*f);
  }
  return out;
}

std::vector<const Variant*> VariantCache::of(const VariantOwner& owner) const {
  std::vector<const Entry*> found;
  if (owner.used_)
    for (size_t b = 0; b < kBuckets; ++b)
      for (Entry* v = first(b); v; v = v->next.load(std::memory_order_acquire))
        if (v->owner == owner.id()) found.push_back(v);
  std::sort(found.begin(), found.end(), [](const Entry* a, const Entry* b) { return a->made < b->made; });
  return {found.begin(), found.end()};
}

void VariantCache::use(const Variant& variant) {
  const auto& v = static_cast<const Entry&>(variant);
  // Written only when it changes, so that threads share the line.
  uint64_t now = clock_.load(std::memory_order_relaxed);
  if (v.used.load(std::memory_order_relaxed) != now) v.used.store(now, std::memory_order_relaxed);
}

const Variant* VariantCache::insert(const VariantKey& key, Variant variant) {
  Unlinked go;
  Entry* v;
  {
    std::lock_guard lock(mutex_);
    uint64_t now = clock_.fetch_add(1) + 1;
    v = new Entry{std::move(variant), key.owner.id(), key.hash, now, {key.signature.begin(), key.signature.end()}, now};
    // What is made for more is asked first: one that serves all sizes comes behind those of some.
    std::atomic<Entry*>* at = &buckets_[key.hash % kBuckets];
    for (Entry* other = at->load(std::memory_order_relaxed); other; other = other->next.load(std::memory_order_relaxed))
      if (other->is_of(key) && other->program.conditions.facts().size() > v->program.conditions.facts().size())
        at = &other->next;
    v->next.store(at->load(std::memory_order_relaxed), std::memory_order_relaxed);
    at->store(v, std::memory_order_release);
    key.owner.used_ = true;
    size_.fetch_add(1);
    go = beyond_limit();
  }
  free(std::move(go));
  return v;
}

// The caller has the lock.
template <class Goes>
VariantCache::Unlinked VariantCache::unlink(Goes goes) {
  Unlinked out;
  for (size_t b = 0; b < kBuckets; ++b)
    for (std::atomic<Entry*>* at = &buckets_[b]; Entry* v = at->load(std::memory_order_relaxed);) {
      if (!goes(*v)) {
        at = &v->next;
        continue;
      }
      // A reader that stands on it still finds its way on.
      at->store(v->next.load(std::memory_order_relaxed), std::memory_order_release);
      out.emplace_back(v);
    }
  size_ -= out.size();
  evicted_ += out.size();  // before they are retired: who still counts fewer keeps them
  return out;
}

// An eighth goes at a time, so that eviction is rare.
VariantCache::Unlinked VariantCache::beyond_limit() {
  if (size() <= limit_) return {};
  std::vector<uint64_t> times;
  for (size_t b = 0; b < kBuckets; ++b)
    for (Entry* v = first(b); v; v = v->next.load(std::memory_order_relaxed))
      times.push_back(v->used.load(std::memory_order_relaxed));
  size_t keep = limit_ - limit_ / 8, left = times.size() - std::min(times.size(), keep);
  std::nth_element(times.begin(), times.begin() + static_cast<int64_t>(left) - 1, times.end());
  return unlink([last = times[left - 1], left](const Entry& v) mutable {
    return v.used.load(std::memory_order_relaxed) <= last && left > 0 && left-- > 0;
  });
}

void VariantCache::forget(const VariantOwner& owner) {
  Unlinked go;
  {
    std::lock_guard lock(mutex_);
    go = unlink([&](const Entry& v) { return v.owner == owner.id(); });
  }
  free(std::move(go));
}

// Without the lock: what goes may own variants itself.
void VariantCache::free(Unlinked unlinked) {
  if (unlinked.empty()) return;
  Epoch::retire([all = std::make_shared<Unlinked>(std::move(unlinked))]() mutable { all.reset(); });
}

}  // namespace brasa::program
