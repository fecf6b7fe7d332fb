#pragma once

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>

#include <unistd.h>

#include <brasa/brasa.h>
#include <torch/containers.h>
#include <torch/dispatch.h>
#include <torch/macros.h>

// Small things of c10 that programs use.
namespace c10 {

using std::in_place;
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
using List = std::vector<T>;

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
inline ::brasa::Tensor index(const ::brasa::Tensor& self, ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices) {
  return self.index(indices);
}
inline ::brasa::Tensor& index_put_(const ::brasa::Tensor& self,
                                   ::brasa::ArrayRef<std::optional<::brasa::Tensor>> indices,
                                   const ::brasa::Tensor& values, bool accumulate = false) {
  return self.index_put_(indices, values, accumulate);
}

using ::brasa::in_parallel_region;
using ::brasa::parallel_for;
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
      parts[static_cast<size_t>(i)] =
          body(begin + i * piece, std::min(end, begin + (i + 1) * piece), identity);
  });
  T result = identity;
  for (const T& part : parts) result = combine(result, part);
  return result;
}

// The numbers that operators take; options have words for it (see torch::kMean).
namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}

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

/// No CUDA device is driven through this interface yet.
namespace cuda {
inline bool is_available() { return false; }
inline bool cudnn_is_available() { return false; }
inline size_t device_count() { return 0; }
inline void manual_seed(uint64_t) {}
inline void manual_seed_all(uint64_t) {}
inline void synchronize(int64_t = -1) {}
}  // namespace cuda
namespace mps {
inline bool is_available() { return false; }
}  // namespace mps

}  // namespace torch
