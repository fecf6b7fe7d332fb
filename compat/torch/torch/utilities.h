#pragma once

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include <unistd.h>

#include <brasa/brasa.h>
#include <brasa/nn/utils/rnn.h>
#include <torch/containers.h>
#include <torch/devices.h>
#include <torch/dispatch.h>
#include <torch/functions.h>
#include <torch/macros.h>

// Of the standard library what LibTorch's headers bring besides: programs use it without including it.
#include <bitset>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <iomanip>
#include <list>
#include <queue>
#include <stack>
#include <thread>
#include <typeindex>

// Small things of c10 that programs use.
namespace c10 {

using std::in_place;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;
template <class T>
using complex = std::complex<T>;
using string_view = std::string_view;
using ::brasa::holds_alternative;
using std::get_if;
using std::holds_alternative;
using std::monostate;
using std::variant;
using std::visit;
using Storage = ::brasa::TensorStorage;

template <class T>
inline constexpr T pi = std::numbers::pi_v<T>;

template <class... A>
std::string str(const A&... parts) {
  return ::torch::detail::message(parts...);
}
using std::to_string;
template <class Items>
std::string Join(const std::string& between, const Items& items) {
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) out += between;
    first = false;
    out += str(item);
  }
  return out;
}

/// A file that is deleted with its handle.
struct TempFile {
  TempFile(std::string name, int fd) : fd(fd), name(std::move(name)) {}
  TempFile(TempFile&& o) noexcept : fd(std::exchange(o.fd, -1)), name(std::move(o.name)) { o.name.clear(); }
  TempFile(const TempFile&) = delete;
  TempFile& operator=(const TempFile&) = delete;
  ~TempFile() {
    if (fd >= 0) ::close(fd);
    if (!name.empty()) ::unlink(name.c_str());
  }
  int fd;
  std::string name;
};
inline std::optional<TempFile> try_make_tempfile(const std::string& prefix = "torch-file-") {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder ? folder : "/tmp") + "/" + prefix + "XXXXXX";
  int fd = ::mkstemp(path.data());
  if (fd < 0) return std::nullopt;
  return TempFile(std::move(path), fd);
}
inline TempFile make_tempfile(const std::string& prefix = "torch-file-") {
  std::optional<TempFile> file = try_make_tempfile(prefix);
  TORCH_CHECK(file, "cannot make a temporary file with the prefix ", prefix);
  return std::move(*file);
}

namespace guts {
/// A parameter's key in an optimizer's state: the text that it was in LibTorch 1, the address that it is now.
struct StateKey {
  void* address;
  operator void*() const { return address; }
  operator std::string() const { return str(address); }
};
inline StateKey to_string(::brasa::detail::TensorImplBase* impl) { return {impl}; }
template <class T>
std::string to_string(const T& value) {
  return str(value);
}
}  // namespace guts

inline constexpr struct AutogradKeys {
} autograd_dispatch_keyset{};
namespace impl {
// Of this thread's state LibTorch would express: inference mode leaves autograd and the tracking of views out.
inline bool tls_is_dispatch_key_excluded(::brasa::DispatchKey) { return false; }
inline bool tls_is_dispatch_key_included(::brasa::DispatchKey key) {
  return key == ::brasa::DispatchKey::ADInplaceOrView && !::brasa::InferenceMode::is_enabled();
}
inline bool tls_is_dispatch_keyset_excluded(AutogradKeys) { return ::brasa::InferenceMode::is_enabled(); }
inline bool tls_is_dispatch_keyset_included(AutogradKeys) { return false; }
}  // namespace impl

inline constexpr uint64_t default_rng_seed_val = 67280421310721;

// Questions about dtypes.
inline size_t elementSize(::brasa::DType t) { return static_cast<size_t>(::brasa::size_of(t)); }
inline bool isFloatingType(::brasa::DType t) { return ::brasa::is_floating(t); }
inline bool isReducedFloatingType(::brasa::DType t) { return ::brasa::is_reduced_floating(t); }
inline bool isComplexType(::brasa::DType t) { return ::brasa::is_complex(t); }
inline bool isIntegralType(::brasa::DType t, bool with_bool) { return ::brasa::is_integral(t, with_bool); }
inline bool isSignedType(::brasa::DType t) { return ::brasa::is_signed(t); }
inline ::brasa::DType toComplexType(::brasa::DType t) { return ::brasa::complex_of(t); }
inline ::brasa::DType toRealValueType(::brasa::DType t) { return ::brasa::real_part_of(t); }
inline ::brasa::DType promoteTypes(::brasa::DType a, ::brasa::DType b) { return ::brasa::promote_types(a, b); }
/// Whether values may lose no more than precision.
inline bool canCast(::brasa::DType from, ::brasa::DType to) {
  if (::brasa::is_complex(from) && !::brasa::is_complex(to)) return false;
  if (::brasa::is_floating(from) && ::brasa::is_integral(to)) return false;
  return from == ::brasa::kBool || to != ::brasa::kBool;
}
inline ::brasa::TypeMeta get_default_dtype() { return ::brasa::get_default_dtype(); }
inline ::brasa::DType get_default_dtype_as_scalartype() { return ::brasa::get_default_dtype(); }
/// The dimension that a negative one counts to from the end.
inline int64_t maybe_wrap_dim(int64_t dim, int64_t rank, bool wrap_scalar = true) {
  int64_t n = rank == 0 && wrap_scalar ? 1 : rank;
  TORCH_CHECK_INDEX(dim >= -n && dim < n, "Dimension out of range (expected to be in range of [", -n, ", ", n - 1,
                    "], but got ", dim, ")");
  return dim < 0 ? dim + n : dim;
}

/// Options with the dtype of elements of type T.
template <class T>
::brasa::TensorOptions dtype() {
  return ::brasa::TensorOptions().dtype(::brasa::dtype_for<T>::value);
}

inline ::brasa::DType typeMetaToScalarType(::brasa::TypeMeta type) { return type; }
inline ::brasa::TypeMeta scalarTypeToTypeMeta(::brasa::DType type) { return type; }
inline std::optional<::brasa::DType> optTypeMetaToScalarType(std::optional<::brasa::TypeMeta> type) {
  return type ? std::optional<::brasa::DType>(*type) : std::nullopt;
}

}  // namespace c10

namespace ska {
template <class Key, class Value>
using flat_hash_map = std::unordered_map<Key, Value>;
}
namespace caffe2 {
using TypeMeta = ::brasa::TypeMeta;
}

namespace at {
using namespace ::c10;
using Tensors = std::vector<::brasa::Tensor>;

namespace detail {
inline ::brasa::Generator createCPUGenerator(uint64_t seed = c10::default_rng_seed_val) {
  return ::brasa::Generator(seed);
}
inline const ::brasa::Generator& getDefaultCPUGenerator() { return ::brasa::default_generator(); }
}  // namespace detail

/// LibTorch's kind of a stream of random numbers on the host: make_generator<CPUGeneratorImpl>(seed). Brasa has one kind for all devices.
struct CPUGeneratorImpl;
template <class Kind, class... Seed>
::brasa::Generator make_generator(Seed... seed) {
  return ::brasa::Generator(static_cast<uint64_t>(seed)...);
}

/// Operators below it are not recorded.
struct AutoDispatchBelowAutograd : ::brasa::NoGradGuard {
  explicit AutoDispatchBelowAutograd(bool = true) {}
};
struct AutoNonVariableTypeMode : AutoDispatchBelowAutograd {
  explicit AutoNonVariableTypeMode(bool = true) {
    TORCH_WARN_ONCE("AutoNonVariableTypeMode is deprecated; use InferenceMode or AutoDispatchBelowAutograd instead.");
  }
};

/// In the dtype of the data and of at least one dimension, unlike torch::tensor.
inline ::brasa::Tensor tensor(const ::brasa::detail::TensorData& data, const ::brasa::TensorOptions& options = {}) {
  bool drops_imaginary =
      ::brasa::is_complex(data.scalar_type()) && options.has_dtype() && !::brasa::is_complex(options.dtype());
  TORCH_CHECK(!drops_imaginary, "\"tensor_cpu\" not implemented for '", toString(options.dtype()), "'");
  ::brasa::Tensor t = ::brasa::tensor(data, options.has_dtype() ? options : options.dtype(data.scalar_type()));
  return data.is_scalar() ? t.reshape({1}) : t;
}
using ::brasa::in_parallel_region;
using ::brasa::parallel_for;
/// The shape that both broadcast to.
inline std::vector<int64_t> infer_size(::brasa::IntArrayRef a, ::brasa::IntArrayRef b) {
  std::vector<int64_t> out(std::max(a.size(), b.size()));
  for (size_t back = 1; back <= out.size(); ++back) {
    int64_t x = back <= a.size() ? a[a.size() - back] : 1, y = back <= b.size() ? b[b.size() - back] : 1;
    TORCH_CHECK(x == y || x == 1 || y == 1, "The size of tensor a (", x, ") must match the size of tensor b (", y,
                ") at non-singleton dimension ", out.size() - back);
    out[out.size() - back] = x == 1 ? y : x;
  }
  return out;
}
inline bool can_cast(::brasa::DType from, ::brasa::DType to) { return ::c10::canCast(from, to); }
inline int64_t divup(int64_t x, int64_t y) { return (x + y - 1) / y; }
/// Folds what `body(begin, end, identity)` gives of each piece with `combine`, in order.
template <class T, class Body, class Combine>
T parallel_reduce(int64_t begin, int64_t end, int64_t grain_size, const T identity, const Body& body,
                  const Combine& combine) {
  if (begin >= end) return identity;
  int64_t piece = std::max<int64_t>(std::max<int64_t>(grain_size, 1), divup(end - begin, ::brasa::get_num_threads()));
  std::vector<T> parts(static_cast<size_t>(divup(end - begin, piece)), identity);
  ::brasa::parallel_for(0, static_cast<int64_t>(parts.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      parts[static_cast<size_t>(i)] = body(begin + i * piece, std::min(end, begin + (i + 1) * piece), identity);
  });
  T result = identity;
  for (const T& part : parts) result = combine(result, part);
  return result;
}

// The numbers that operators take; options have words for it (see torch::kMean).
namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}

enum class Float32MatmulPrecision { HIGHEST, HIGH, MEDIUM };

/// Switches of LibTorch's kernels. Those of products are set_float32_matmul_precision; the others are only remembered here: Brasa's
/// results do not depend on them.
class Context {
 public:
  void setFloat32MatmulPrecision(const std::string& precision) { ::brasa::set_float32_matmul_precision(precision); }
  Float32MatmulPrecision float32MatmulPrecision() const {
    std::string p = ::brasa::get_float32_matmul_precision();
    return p == "highest" ? Float32MatmulPrecision::HIGHEST
           : p == "high"  ? Float32MatmulPrecision::HIGH
                          : Float32MatmulPrecision::MEDIUM;
  }
  void setAllowTF32CuBLAS(bool on) { setFloat32MatmulPrecision(on ? "high" : "highest"); }
  bool allowTF32CuBLAS() const { return float32MatmulPrecision() != Float32MatmulPrecision::HIGHEST; }
  void setAllowTF32CuDNN(bool on) { tf32_cudnn_ = on; }
  bool allowTF32CuDNN() const { return tf32_cudnn_; }
  void setDeterministicAlgorithms(bool on, bool warn_only = false) {
    deterministic_ = on;
    warn_only_ = warn_only;
  }
  bool deterministicAlgorithms() const { return deterministic_; }
  bool deterministicAlgorithmsWarnOnly() const { return warn_only_; }
  void setDeterministicCuDNN(bool on) { deterministic_cudnn_ = on; }
  bool deterministicCuDNN() const { return deterministic_cudnn_; }
  void setBenchmarkCuDNN(bool on) { benchmark_cudnn_ = on; }
  bool benchmarkCuDNN() const { return benchmark_cudnn_; }
  static bool hasCUDA() { return ::brasa::device_count(::brasa::kCUDA) > 0; }
  static bool hasMPS() { return false; }
  static bool hasLAPACK() { return true; }
  // Products, convolutions and threads are Brasa's own.
  static bool hasMKL() { return false; }
  static bool hasMKLDNN() { return false; }
  static bool hasOpenMP() { return false; }

 private:
  bool tf32_cudnn_ = true;
  bool deterministic_ = false, warn_only_ = false, deterministic_cudnn_ = false, benchmark_cudnn_ = false;
};
inline Context& globalContext() {
  static Context context;
  return context;
}
inline bool hasCUDA() { return Context::hasCUDA(); }
inline bool hasMPS() { return Context::hasMPS(); }
inline bool hasLAPACK() { return Context::hasLAPACK(); }
inline bool hasMKL() { return Context::hasMKL(); }
inline bool hasMKLDNN() { return Context::hasMKLDNN(); }
inline bool hasOpenMP() { return Context::hasOpenMP(); }

enum class Backend { CPU, CUDA, SparseCPU, SparseCUDA };
inline ::brasa::TensorOptions getDeprecatedTypeProperties(Backend backend, ::brasa::DType dtype) {
  bool sparse = backend == Backend::SparseCPU || backend == Backend::SparseCUDA;
  bool cuda = backend == Backend::CUDA || backend == Backend::SparseCUDA;
  return ::brasa::TensorOptions()
      .dtype(dtype)
      .device(cuda ? ::brasa::kCUDA : ::brasa::kCPU)
      .layout(sparse ? ::brasa::kSparse : ::brasa::kStrided);
}
}  // namespace at

namespace torch {

using namespace ::c10;
using std::make_unique;
using std::nullopt;
using std::optional;

namespace detail {
using ::brasa::detail::TensorData;
using TensorDataContainer = ::brasa::detail::TensorData;
}  // namespace detail

namespace utils {
/// One long vector of dense tensors, and back to the sizes of `tensors`.
inline ::brasa::Tensor flatten_dense_tensors(const std::vector<::brasa::Tensor>& tensors) {
  std::vector<::brasa::Tensor> flat;
  for (const ::brasa::Tensor& t : tensors) flat.push_back(t.contiguous().view({-1}));
  return ::brasa::cat(flat);
}
inline std::vector<::brasa::Tensor> unflatten_dense_tensors(const ::brasa::Tensor& flat,
                                                            const std::vector<::brasa::Tensor>& tensors) {
  std::vector<::brasa::Tensor> out;
  int64_t offset = 0;
  for (const ::brasa::Tensor& t : tensors) {
    // An empty tensor must not share the memory of another.
    out.push_back(t.numel() == 0 ? ::brasa::empty({0}, flat.options())
                                 : flat.narrow(0, offset, t.numel()).view(t.sizes()));
    offset += t.numel();
  }
  return out;
}
}  // namespace utils

namespace Reduction = ::at::Reduction;
using ::at::hasCUDA;
using ::at::hasMPS;
using ::at::make_generator;

inline ::brasa::Tensor pad_sequence(::brasa::TensorList sequences, bool batch_first = false, double padding_value = 0) {
  return ::brasa::nn::utils::rnn::pad_sequence(sequences, batch_first, padding_value);
}

/// Writes LibTorch's archives. An object, because a call would find Brasa's function, too, by its arguments.
inline constexpr struct {
  template <class T, class To>
  void operator()(const T& value, To&& to) const {
    ::brasa::save(value, std::forward<To>(to), ::brasa::serialize::Form::LibTorch);
  }
} save;

using ::at::can_cast;

namespace mps {
inline bool is_available() { return false; }
}  // namespace mps

}  // namespace torch
