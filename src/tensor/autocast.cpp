#include "tensor/autocast.h"

#include <brasa/autocast.h>
#include <brasa/autograd.h>
#include <brasa/warning.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "runtime/device.h"
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

// The emulated GPU shares the CPU's, so that programs for the CPU run there.
uint32_t bit(DeviceType type) { return uint32_t{1} << static_cast<int>(type) % 32; }

struct State {
  bool caches = true;
  AutocastDTypes dtypes;  // that the user chose, where it is not the device's own
  int nesting = 0;
  CastCacheEntries own;
  CastCacheEntries* cache = &own;
};

State& state() {
  thread_local State s;
  return s;
}

DType usual_dtype(DeviceType type) {
  const runtime::DeviceRow* row = runtime::find_device_row(type);
  return row ? row->autocast : runtime::DeviceRow{}.autocast;
}
DType dtype_of(DeviceType type) {
  auto it = state().dtypes.find(type);
  return it == state().dtypes.end() ? usual_dtype(type) : it->second;
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

AutocastAs::AutocastAs() : enabled_(autocast_kinds), caches_(state().caches), dtypes_(state().dtypes) {}
AutocastAs::Scope::Scope(const AutocastAs& as)
    : enabled_(autocast_kinds, as.enabled_), caches_(state().caches, as.caches_), dtypes_(state().dtypes, as.dtypes_) {
  ++state().nesting;
}
AutocastAs::Scope::~Scope() {
  if (--state().nesting == 0) state().cache->by_source.clear();
}

NoAutocast::NoAutocast() : Scoped(autocast_kinds, 0) {}

CastCall::CastCall(const ops::Row& row, ArrayRef<CallArg> args) {
  using ops::Autocast;
  uint32_t on = autocast_kinds;
  bool names_dtype =
      std::any_of(args.begin(), args.end(), [](const CallArg& a) { return a.kind == CallArg::Kind::DType; });
  auto policy = [&](const Tensor& t) {
    if (!eligible(t, on)) return Autocast::None;
    bool gpu = impl_of(t)->device().properties().loops == runtime::Loops::Gpu;
    Autocast p = gpu ? row.autocast_on_gpus : row.autocast;
    BRASA_CHECK(
        p != Autocast::Refused, row.name(),
        ": it overflows easily in the dtypes of autocast. Take binary_cross_entropy_with_logits (BCEWithLogitsLoss), "
        "which applies the sigmoid itself, or turn autocast off for this call and give it float32");
    if (p == Autocast::Float32ByDefault) return names_dtype ? Autocast::None : Autocast::Float32;
    return p;
  };
  bool casts = false, wide = false;
  each_tensor(args, [&](const Tensor& t) {
    if (!t.defined()) return;
    casts |= policy(t) != Autocast::None;
    wide |= t.scalar_type() == DType::Float32;
  });
  if (!casts) return;
  cast_.emplace(args);
  auto as_wanted = [&](const Tensor& t) {
    Autocast p = t.defined() ? policy(t) : Autocast::None;
    if (p == Autocast::None) return t;
    bool float32 = p == Autocast::Float32 || (p == Autocast::Widest && wide);
    return cast(t, float32 ? DType::Float32 : dtype_of(t.device().type()), on);
  };
  for (Tensor& t : cast_->args.tensors()) t = as_wanted(t);
  for (std::optional<Tensor>& t : cast_->args.optional_tensors())
    if (t) t = as_wanted(*t);
}

CastCache::CastCache() : entries_(std::make_unique<CastCacheEntries>()), installed_(state().cache, entries_.get()) {}
CastCache::~CastCache() = default;
void CastCache::clear() { entries_->by_source.clear(); }

}  // namespace brasa::eager

namespace brasa::autocast {

bool is_autocast_enabled(DeviceType device) { return eager::autocast_kinds & eager::bit(device); }
void set_autocast_enabled(DeviceType device, bool enabled) {
  uint32_t& all = eager::autocast_kinds;
  all = enabled ? all | eager::bit(device) : all & ~eager::bit(device);
}
DType get_autocast_dtype(DeviceType device) { return eager::dtype_of(device); }
void set_autocast_dtype(DeviceType device, DType dtype) {
  eager::AutocastDTypes& chosen = eager::state().dtypes;
  if (dtype == eager::usual_dtype(device))
    chosen.erase(device);  // as if nobody had chosen: guards compare what was chosen
  else
    chosen[device] = dtype;
}
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
