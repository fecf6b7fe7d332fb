#pragma once

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <unistd.h>

#include <brasa/brasa.h>
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

inline ::brasa::DType typeMetaToScalarType(::brasa::TypeMeta type) { return type; }
inline ::brasa::TypeMeta scalarTypeToTypeMeta(::brasa::DType type) { return type; }
inline std::optional<::brasa::DType> optTypeMetaToScalarType(std::optional<::brasa::TypeMeta> type) {
  return type ? std::optional<::brasa::DType>(*type) : std::nullopt;
}

}  // namespace c10

namespace at {
using namespace ::c10;
using Tensors = std::vector<::brasa::Tensor>;
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
