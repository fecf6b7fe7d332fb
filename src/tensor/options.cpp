#include <brasa/options.h>

#include <atomic>
#include <ostream>

#include <brasa/array_ref.h>
#include <brasa/device.h>

namespace brasa {

const char* toString(DType t) { return info_of(t).scalar_type.data(); }
std::ostream& operator<<(std::ostream& out, DType t) { return out << toString(t); }

std::string_view TypeMeta::name() const { return info_of(type_).cpp_name; }
std::ostream& operator<<(std::ostream& out, TypeMeta t) { return out << t.name(); }

std::ostream& operator<<(std::ostream& out, Layout l) {
  constexpr const char* names[] = {"Strided", "Sparse", "SparseCsr"};
  return out << names[static_cast<int>(l)];
}

namespace {
std::atomic<DType> default_dtype{DType::Float32};
}

DType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) { default_dtype.store(t, std::memory_order_relaxed); }

std::ostream& operator<<(std::ostream& out, MemoryFormat f) {
  constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  return out << names[static_cast<int>(f)];
}

std::ostream& operator<<(std::ostream& out, const TensorOptions& o) {
  auto by_default = [](bool given) { return given ? "" : " (default)"; };
  // LibTorch's leaves the stream so, too.
  out << std::boolalpha << "TensorOptions(dtype=" << o.dtype() << by_default(o.has_dtype());
  out << ", device=" << o.device() << by_default(o.has_device());
  out << ", layout=" << o.layout() << by_default(o.has_layout());
  out << ", requires_grad=" << o.requires_grad() << by_default(o.has_requires_grad());
  out << ", pinned_memory=" << o.pinned_memory() << by_default(o.has_pinned_memory());
  out << ", memory_format=";
  if (o.has_memory_format()) return out << *o.memory_format_opt() << ')';
  return out << "(nullopt))";
}

Device TensorOptions::device() const { return device_ ? device_.value : get_default_device(); }
TypeMeta TensorOptions::dtype() const { return dtype_.value_or(get_default_dtype()); }

TensorOptions TensorOptions::merge_in(const TensorOptions& o) const {
  TensorOptions r = *this;
  if (o.dtype_) r.dtype_ = o.dtype_;
  if (o.device_) r.device_ = o.device_;
  if (o.layout_) r.layout_ = o.layout_;
  if (o.requires_grad_) r.requires_grad_ = o.requires_grad_;
  if (o.pinned_) r.pinned_ = o.pinned_;
  if (o.memory_format_) r.memory_format_ = o.memory_format_;
  return r;
}

namespace {
template <class T>
std::ostream& write_list(std::ostream& out, ArrayRef<T> items) {
  out << '[';
  for (size_t i = 0; i < items.size(); ++i) out << (i ? ", " : "") << items[i];
  return out << ']';
}
}  // namespace
std::ostream& operator<<(std::ostream& out, IntArrayRef items) { return write_list(out, items); }
std::ostream& operator<<(std::ostream& out, ArrayRef<double> items) { return write_list(out, items); }

}  // namespace brasa
