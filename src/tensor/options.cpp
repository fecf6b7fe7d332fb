#include <brasa/options.h>

#include <atomic>
#include <charconv>
#include <ostream>

#include <brasa/array_ref.h>

#include "support/error.h"

namespace brasa {

const char* toString(DType t) {
  switch (t) {
    case DType::UInt8: return "Byte";
    case DType::Int8: return "Char";
    case DType::Int16: return "Short";
    case DType::Int32: return "Int";
    case DType::Int64: return "Long";
    case DType::Float16: return "Half";
    case DType::Float32: return "Float";
    case DType::Float64: return "Double";
    case DType::Complex32: return "ComplexHalf";
    case DType::Complex64: return "ComplexFloat";
    case DType::Complex128: return "ComplexDouble";
    case DType::Bool: return "Bool";
    case DType::BFloat16: return "BFloat16";
  }
  return "Undefined";
}
std::ostream& operator<<(std::ostream& out, DType t) { return out << toString(t); }

std::string_view TypeMeta::name() const {
  switch (type_) {
    case DType::UInt8: return "unsigned char";
    case DType::Int8: return "signed char";
    case DType::Int16: return "short int";
    case DType::Int32: return "int";
    case DType::Int64: return "long int";
    case DType::Float16: return "c10::Half";
    case DType::Float32: return "float";
    case DType::Float64: return "double";
    case DType::Complex32: return "c10::complex<c10::Half>";
    case DType::Complex64: return "c10::complex<float>";
    case DType::Complex128: return "c10::complex<double>";
    case DType::Bool: return "bool";
    case DType::BFloat16: return "c10::BFloat16";
  }
  return "nullptr (uninitialized)";
}
std::ostream& operator<<(std::ostream& out, TypeMeta t) { return out << t.name(); }

std::ostream& operator<<(std::ostream& out, Layout l) {
  constexpr const char* names[] = {"Strided", "Sparse", "SparseCsr"};
  return out << names[static_cast<int>(l)];
}
std::ostream& operator<<(std::ostream& out, DeviceType t) { return out << (t == kCPU ? "cpu" : "cuda"); }

Device::Device(std::string_view text) : type_(kCPU), index_(-1) {
  size_t colon = text.find(':');
  std::string_view type = text.substr(0, colon);
  BRASA_CHECK(type == "cpu" || type == "cuda",
              "Expected one of cpu, cuda device type at start of device string: ", text);
  type_ = type == "cuda" ? kCUDA : kCPU;
  if (colon == text.npos) return;
  std::string_view digits = text.substr(colon + 1);
  int index = -1;
  auto r = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  BRASA_CHECK(r.ec == std::errc() && r.ptr == digits.data() + digits.size() && index >= 0 && index < 128,
              "Invalid device string: '", text, "'");
  index_ = static_cast<int8_t>(index);
}
std::string Device::str() const {
  std::string out = type_ == kCPU ? "cpu" : "cuda";
  return index_ >= 0 ? out + ":" + std::to_string(index_) : out;
}
std::ostream& operator<<(std::ostream& out, Device d) { return out << d.str(); }

namespace {
std::atomic<DType> default_dtype{DType::Float32};
}

DType get_default_dtype() { return default_dtype.load(std::memory_order_relaxed); }
void set_default_dtype(DType t) {
  BRASA_CHECK(is_floating(t), "only floating-point types are supported as the default type, got ", name(t));
  default_dtype.store(t, std::memory_order_relaxed);
}

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
