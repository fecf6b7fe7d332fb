#include "tensor/autocast.h"

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/warning.h>

#include <algorithm>
#include <cctype>
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

uint32_t bit(DeviceType type) { return uint32_t{1} << static_cast<int>(type) % 32; }

struct State {
  uint32_t enabled = 0;  // a bit a kind of devices
  bool caches = true;
  AutocastDTypes dtypes = {{kCUDA, DType::Float16}};  // bfloat16 where there is none
  int nesting = 0;
  CastCacheEntries own;
  CastCacheEntries* cache = &own;
};

State& state() {
  thread_local State s;
  return s;
}

DType dtype_of(DeviceType type) {
  auto it = state().dtypes.find(type);
  return it == state().dtypes.end() ? DType::BFloat16 : it->second;
}

// On devices that autocast is on for.
bool eligible(const Tensor& t, uint32_t on) {
  return t.defined() && is_floating(t.scalar_type()) && t.scalar_type() != DType::Float64 &&
         on & bit(t.device().type());
}

Tensor cast(const Tensor& t, DType to, uint32_t on) {
  if (!eligible(t, on) || t.scalar_type() == to) return t;
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

// "CPU", for messages.
std::string upper(DeviceType type) {
  std::string name = Device(type).str();
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

AutocastAs::AutocastAs() : enabled_(state().enabled), caches_(state().caches), dtypes_(state().dtypes) {}
AutocastAs::Scope::Scope(const AutocastAs& as)
    : enabled_(state().enabled, as.enabled_), caches_(state().caches, as.caches_), dtypes_(state().dtypes, as.dtypes_) {
  ++state().nesting;
}
AutocastAs::Scope::~Scope() {
  if (--state().nesting == 0) state().cache->by_source.clear();
}

bool autocasting() { return state().enabled != 0; }

NoAutocast::NoAutocast() : Scoped(state().enabled, 0) {}

CastCall::CastCall(ops::Autocast policy, ArrayRef<CallArg> args) : on_(state().enabled), args_(args) {
  bool wide = policy == ops::Autocast::Float32;
  if (policy == ops::Autocast::Widest)
    each_tensor(args, [&](const Tensor& t) { wide |= t.defined() && t.scalar_type() == DType::Float32; });
  auto as_wanted = [&](const Tensor& t) {
    return t.defined() ? cast(t, wide ? DType::Float32 : dtype_of(t.device().type()), on_) : t;
  };
  for (Tensor& t : args_.tensors()) t = as_wanted(t);
  for (std::optional<Tensor>& t : args_.optional_tensors())
    if (t) t = as_wanted(*t);
}

CastCache::CastCache() : entries_(std::make_unique<CastCacheEntries>()), installed_(state().cache, entries_.get()) {}
CastCache::~CastCache() = default;
void CastCache::clear() { entries_->by_source.clear(); }

}  // namespace brasa::eager

namespace brasa::autocast {

bool is_autocast_enabled(DeviceType device) { return eager::state().enabled & eager::bit(device); }
void set_autocast_enabled(DeviceType device, bool enabled) {
  uint32_t& all = eager::state().enabled;
  all = enabled ? all | eager::bit(device) : all & ~eager::bit(device);
}
DType get_autocast_dtype(DeviceType device) { return eager::dtype_of(device); }
void set_autocast_dtype(DeviceType device, DType dtype) { eager::state().dtypes[device] = dtype; }
bool is_autocast_cache_enabled() { return eager::state().caches; }
void set_autocast_cache_enabled(bool enabled) { eager::state().caches = enabled; }
int increment_nesting() { return ++eager::state().nesting; }
int decrement_nesting() { return --eager::state().nesting; }
Tensor cached_cast(DType to, const Tensor& t, DeviceType device) {
  eager::NoAutocast off;
  return eager::cast(t, to, eager::bit(device));
}
void clear_cache() { eager::state().cache->by_source.clear(); }

}  // namespace brasa::autocast

namespace brasa {

AutocastMode::AutocastMode(DeviceType device, DType dtype, bool enabled, bool cache_enabled) : device_(device) {
  eager::State& s = eager::state();
  if (enabled && dtype != DType::BFloat16 && dtype != DType::Float16) {
    Warning::warn({__func__, __FILE__, __LINE__},
                  str("In ", eager::upper(device), " autocast, but the target dtype ", toString(dtype),
                      " is not supported. Disabling autocast. ", eager::upper(device),
                      " autocast only supports dtypes of bfloat16 and float16."),
                  true);
    enabled = false;
  }
  previous_enabled_ = autocast::is_autocast_enabled(device);
  previous_cache_ = std::exchange(s.caches, cache_enabled);
  previous_dtype_ = autocast::get_autocast_dtype(device);
  autocast::set_autocast_enabled(device, enabled);
  autocast::set_autocast_dtype(device, dtype);
  ++s.nesting;
}
AutocastMode::~AutocastMode() {
  eager::State& s = eager::state();
  if (--s.nesting == 0) s.cache->by_source.clear();
  s.caches = previous_cache_;
  autocast::set_autocast_enabled(device_, previous_enabled_);
  autocast::set_autocast_dtype(device_, previous_dtype_);
}

}  // namespace brasa
