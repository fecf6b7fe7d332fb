#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <brasa/dtype.h>

namespace brasa {

template <class T>
struct dtype_for;
using ScalarType = DType;

inline constexpr DType kByte = DType::UInt8, kUInt8 = DType::UInt8;
inline constexpr DType kChar = DType::Int8, kInt8 = DType::Int8;
inline constexpr DType kShort = DType::Int16, kInt16 = DType::Int16;
inline constexpr DType kInt = DType::Int32, kInt32 = DType::Int32;
inline constexpr DType kLong = DType::Int64, kInt64 = DType::Int64;
inline constexpr DType kHalf = DType::Float16, kFloat16 = DType::Float16;
inline constexpr DType kFloat = DType::Float32, kFloat32 = DType::Float32;
inline constexpr DType kDouble = DType::Float64, kFloat64 = DType::Float64;
inline constexpr DType kComplexHalf = DType::Complex32, kComplexFloat = DType::Complex64,
                       kComplexDouble = DType::Complex128;
inline constexpr DType kBool = DType::Bool;
inline constexpr DType kBFloat16 = DType::BFloat16;
inline constexpr DType kFloat8_e5m2 = DType::Float8_e5m2, kFloat8_e4m3fn = DType::Float8_e4m3fn;
inline constexpr DType kUInt64 = DType::UInt64;

/// "Float", "Long": PyTorch's names of the enumerators.
BRASA_API const char* toString(DType t);
BRASA_API std::ostream& operator<<(std::ostream& out, DType t);

/// What `Tensor::dtype()` gives: a DType that prints as the C++ type ("float", "long int").
class TypeMeta {
 public:
  constexpr TypeMeta() = default;
  constexpr TypeMeta(DType t) : type_(t) {}           // NOLINT
  constexpr operator DType() const { return type_; }  // NOLINT
  constexpr DType toScalarType() const { return type_; }
  template <class T>
  static TypeMeta Make() {
    return dtype_for<T>::value;
  }
  constexpr size_t itemsize() const { return static_cast<size_t>(size_of(type_)); }
  BRASA_API std::string_view name() const;
  friend constexpr bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend constexpr bool operator==(TypeMeta a, DType b) { return a.type_ == b; }

 private:
  DType type_ = DType::Float32;
};
BRASA_API std::ostream& operator<<(std::ostream& out, TypeMeta t);

/// PyTorch's kinds of devices, with its numbers. Tensors live on those that have a row in src/runtime/devices.cpp.
enum class DeviceType : int8_t {
  CPU = 0,
  CUDA = 1,
  MKLDNN = 2,
  OPENGL = 3,
  OPENCL = 4,
  IDEEP = 5,
  HIP = 6,
  FPGA = 7,
  XLA = 9,
  Vulkan = 10,
  Metal = 11,
  XPU = 12,
  MPS = 13,
  Meta = 14,
};
using DeviceIndex = int8_t;
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;
BRASA_API std::ostream& operator<<(std::ostream& out, DeviceType t);

class BRASA_API Device {
 public:
  using Type = DeviceType;
  constexpr Device(DeviceType type = kCPU, int8_t index = -1) : type_(type), index_(index) {}  // NOLINT
  /// "cpu", "cuda", "cuda:1", or the name of a row of the table of devices; brasa::Error otherwise.
  Device(std::string_view text);                                       // NOLINT
  Device(const std::string& text) : Device(std::string_view(text)) {}  // NOLINT
  Device(const char* text) : Device(std::string_view(text)) {}         // NOLINT
  constexpr DeviceType type() const { return type_; }
  constexpr int8_t index() const { return index_; }
  constexpr bool has_index() const { return index_ >= 0; }
  constexpr bool is_cpu() const { return type_ == kCPU; }
  constexpr bool is_cuda() const { return type_ == kCUDA; }
  std::string str() const;
  friend constexpr bool operator==(Device a, Device b) { return a.type_ == b.type_ && a.index_ == b.index_; }

 private:
  DeviceType type_;
  int8_t index_;
};
BRASA_API std::ostream& operator<<(std::ostream& out, Device d);

enum class Layout : int8_t { Strided, Sparse, SparseCsr };
inline constexpr Layout kStrided = Layout::Strided;
inline constexpr Layout kSparse = Layout::Sparse;
inline constexpr Layout kSparseCsr = Layout::SparseCsr;
BRASA_API std::ostream& operator<<(std::ostream& out, Layout l);

enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
BRASA_API std::ostream& operator<<(std::ostream& out, MemoryFormat f);

/// How a new tensor is made; what is not set has the default: float32, the default device (the CPU), no gradient.
class BRASA_API TensorOptions {
 public:
  TensorOptions() = default;
  TensorOptions(DType t) : dtype_(std::optional<DType>(t)) {}     // NOLINT
  TensorOptions(TypeMeta t) : dtype_(std::optional<DType>(t)) {}  // NOLINT
  /// A template, so that `{kCPU, 0}` is a DeviceType and an index.
  template <class T>
    requires(std::is_same_v<std::remove_cvref_t<T>, Device>)
  TensorOptions(T&& d) : device_(std::optional<Device>(d)) {}                 // NOLINT
  TensorOptions(const char* d) : TensorOptions(Device(d)) {}                  // NOLINT
  TensorOptions(const std::string& d) : TensorOptions(Device(d)) {}           // NOLINT
  TensorOptions(DeviceType d) : device_(std::optional<Device>(Device(d))) {}  // NOLINT
  TensorOptions(DeviceType d, int64_t index) : device_(std::optional<Device>(Device(d, static_cast<int8_t>(index)))) {}
  TensorOptions(Layout l) : layout_(std::optional<Layout>(l)) {}                     // NOLINT
  TensorOptions(MemoryFormat f) : memory_format_(std::optional<MemoryFormat>(f)) {}  // NOLINT

  [[nodiscard]] TensorOptions dtype(std::optional<DType> t) const {
    TensorOptions r = *this;
    r.dtype_ = t;
    return r;
  }
  [[nodiscard]] TensorOptions device(std::optional<Device> d) const {
    TensorOptions r = *this;
    r.device_ = d;
    return r;
  }
  [[nodiscard]] TensorOptions device(DeviceType d, int8_t index = -1) const { return device(Device(d, index)); }
  /// The CUDA device of this number.
  [[nodiscard]] TensorOptions device_index(DeviceIndex index) const { return device(kCUDA, index); }
  [[nodiscard]] TensorOptions layout(std::optional<Layout> l) const {
    TensorOptions r = *this;
    r.layout_ = l;
    return r;
  }
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> v) const {
    TensorOptions r = *this;
    r.requires_grad_ = v;
    return r;
  }
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> v) const {
    TensorOptions r = *this;
    r.pinned_ = v;
    return r;
  }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    TensorOptions r = *this;
    r.memory_format_ = f;
    return r;
  }
  /// These options, where `o` sets nothing else.
  [[nodiscard]] TensorOptions merge_in(const TensorOptions& o) const;

  TypeMeta dtype() const;  // the default dtype where none is set
  Device device() const;   // the default device where none is set
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_.value_or(false); }
  bool has_dtype() const { return dtype_.set; }
  bool has_device() const { return device_.set; }
  bool has_layout() const { return layout_.set; }
  bool has_requires_grad() const { return requires_grad_.set; }
  bool has_pinned_memory() const { return pinned_.set; }
  bool has_memory_format() const { return memory_format_.set; }
  int32_t device_index() const { return device().index(); }
  bool is_sparse() const { return layout() == kSparse; }
  std::optional<DType> dtype_opt() const { return dtype_; }
  std::optional<Device> device_opt() const { return device_; }
  std::optional<Layout> layout_opt() const { return layout_; }
  std::optional<bool> pinned_memory_opt() const { return pinned_; }
  std::optional<bool> requires_grad_opt() const { return requires_grad_; }
  std::optional<MemoryFormat> memory_format_opt() const { return memory_format_; }

 private:
  // An optional whose absent value is initialised too, so that copies of it read no garbage.
  template <class T>
  struct Field {
    T value{};
    bool set = false;
    Field() = default;
    Field(std::optional<T> v) : value(v.value_or(T{})), set(v.has_value()) {}                   // NOLINT
    operator std::optional<T>() const { return set ? std::optional<T>(value) : std::nullopt; }  // NOLINT
    explicit operator bool() const { return set; }
    T value_or(T other) const { return set ? value : other; }
  };
  Field<DType> dtype_;
  Field<Device> device_;
  Field<Layout> layout_;
  Field<bool> requires_grad_, pinned_;
  Field<MemoryFormat> memory_format_;
};

BRASA_API std::ostream& operator<<(std::ostream& out, const TensorOptions& o);

inline TensorOptions dtype(DType t) { return TensorOptions().dtype(t); }
inline TensorOptions device(Device d) { return TensorOptions().device(d); }
inline TensorOptions device_index(DeviceIndex index) { return TensorOptions().device_index(index); }
inline TensorOptions layout(Layout l) { return TensorOptions().layout(l); }
inline TensorOptions requires_grad(bool v = true) { return TensorOptions().requires_grad(v); }

/// The floating dtype of factories that are given none.
BRASA_API DType get_default_dtype();
BRASA_API void set_default_dtype(DType t);

}  // namespace brasa
