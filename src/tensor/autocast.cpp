#include "tensor/autocast.h"

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/warning.h>

#include <unordered_map>
#include <utility>

#include "support/error.h"
#include "tensor/tensor_impl.h"

namespace brasa::eager {

struct CastCacheEntries {
  struct Entry {
    Tensor source, result;
    uint32_t version;
    bool gradients;  // a cast without history is no use to autograd
  };
  std::unordered_map<const TensorImpl*, Entry> by_source;
};

namespace {

struct State {
  bool enabled = false, caches = true;
  DType dtype = DType::BFloat16;
  int nesting = 0;
  CastCacheEntries own;
  CastCacheEntries* cache = &own;
};

State& state() {
  thread_local State s;
  return s;
}

bool eligible(const Tensor& t) {
  return t.defined() && is_floating(t.scalar_type()) && t.scalar_type() != DType::Float64;
}

Tensor cast(const Tensor& t, DType to) {
  if (!eligible(t) || t.scalar_type() == to) return t;
  State& s = state();
  const TensorImpl& impl = *impl_of(t);
  bool weight = s.caches && t.scalar_type() == DType::Float32 && t.requires_grad() && t.is_leaf() && !impl.view;
  if (!weight) return t.to(to);
  CastCacheEntries::Entry& e = s.cache->by_source[&impl];
  uint32_t version = impl.storage->version();
  if (!e.result.defined() || e.result.scalar_type() != to || e.version != version ||
      e.gradients != GradMode::is_enabled())
    e = {t, t.to(to), version, GradMode::is_enabled()};
  return e.result;
}

}  // namespace

bool autocasting() { return state().enabled; }

NoAutocast::NoAutocast() : Scoped(state().enabled, false) {}

CastCall::CastCall(ops::Autocast policy, ArrayRef<CallArg> args) : args_(args) {
  DType to = policy == ops::Autocast::Float32 ? DType::Float32 : state().dtype;
  if (policy == ops::Autocast::Widest)
    each_tensor(args, [&](const Tensor& t) {
      if (t.defined() && t.scalar_type() == DType::Float32) to = DType::Float32;
    });
  for (Tensor& t : args_.tensors()) t = cast(t, to);
  for (std::optional<Tensor>& t : args_.optional_tensors())
    if (t) t = cast(*t, to);
}

CastCache::CastCache() : entries_(std::make_unique<CastCacheEntries>()), installed_(state().cache, entries_.get()) {}
CastCache::~CastCache() = default;
void CastCache::clear() { entries_->by_source.clear(); }

}  // namespace brasa::eager

namespace brasa::autocast {

namespace {
eager::State& state_for(DeviceType device) {
  BRASA_CHECK(device == kCPU, "autocast: only the CPU is known, got ", Device(device).str());
  return eager::state();
}
}  // namespace

bool is_autocast_enabled(DeviceType device) { return state_for(device).enabled; }
void set_autocast_enabled(DeviceType device, bool enabled) { state_for(device).enabled = enabled; }
DType get_autocast_dtype(DeviceType device) { return state_for(device).dtype; }
void set_autocast_dtype(DeviceType device, DType dtype) { state_for(device).dtype = dtype; }
bool is_autocast_cache_enabled() { return eager::state().caches; }
void set_autocast_cache_enabled(bool enabled) { eager::state().caches = enabled; }
int increment_nesting() { return ++eager::state().nesting; }
int decrement_nesting() { return --eager::state().nesting; }
Tensor cached_cast(DType to, const Tensor& t, DeviceType device) {
  state_for(device);
  eager::NoAutocast off;
  return eager::cast(t, to);
}
void clear_cache() { eager::state().cache->by_source.clear(); }

}  // namespace brasa::autocast

namespace brasa {

AutocastMode::AutocastMode(DeviceType device, DType dtype, bool enabled, bool cache_enabled) {
  eager::State& s = autocast::state_for(device);
  if (enabled && dtype != DType::BFloat16 && dtype != DType::Float16) {
    Warning::warn(
        {__func__, __FILE__, __LINE__},
        str("In CPU autocast, but the target dtype ", toString(dtype),
            " is not supported. Disabling autocast. CPU autocast only supports dtypes of bfloat16 and float16."),
        true);
    enabled = false;
  }
  previous_enabled_ = std::exchange(s.enabled, enabled);
  previous_cache_ = std::exchange(s.caches, cache_enabled);
  previous_dtype_ = std::exchange(s.dtype, dtype);
  ++s.nesting;
}
AutocastMode::~AutocastMode() {
  eager::State& s = eager::state();
  if (--s.nesting == 0) s.cache->by_source.clear();
  s.enabled = previous_enabled_;
  s.caches = previous_cache_;
  s.dtype = previous_dtype_;
}

}  // namespace brasa
