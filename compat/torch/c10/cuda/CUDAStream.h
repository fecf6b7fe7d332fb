#pragma once

#include <torch/detail/cuda_types.h>
#include <torch/torch.h>

#include <functional>

namespace c10::cuda {

/// A stream of a GPU.
class CUDAStream {
 public:
  enum Unchecked { UNCHECKED };
  explicit CUDAStream(const Stream& stream) : stream_(stream) {
    TORCH_CHECK(stream.device_type() == ::brasa::kCUDA, "expected a stream of a CUDA device, got one of ",
                stream.device());
  }
  explicit CUDAStream(Unchecked, const Stream& stream) : stream_(stream) {}

  bool operator==(const CUDAStream& other) const noexcept { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const noexcept { return !(*this == other); }
  operator cudaStream_t() const { return stream(); }  // NOLINT
  operator Stream() const { return stream_; }         // NOLINT
  Stream unwrap() const { return stream_; }
  cudaStream_t stream() const { return static_cast<cudaStream_t>(stream_.native_handle()); }
  ::brasa::DeviceType device_type() const { return ::brasa::kCUDA; }
  ::brasa::DeviceIndex device_index() const { return stream_.device_index(); }
  ::brasa::Device device() const { return stream_.device(); }
  StreamId id() const { return stream_.id(); }
  bool query() const { return stream_.query(); }
  void synchronize() const { stream_.synchronize(); }

 private:
  Stream stream_;
};

inline CUDAStream getStreamFromPool(const bool isHighPriority = false, ::brasa::DeviceIndex device = -1) {
  return CUDAStream(::brasa::cuda::stream_from_pool(isHighPriority, device));
}
/// Below 0: of those that go first.
inline CUDAStream getStreamFromPool(const int priority, ::brasa::DeviceIndex device = -1) {
  return getStreamFromPool(priority < 0, device);
}
inline CUDAStream getDefaultCUDAStream(::brasa::DeviceIndex device = -1) {
  return CUDAStream(::brasa::cuda::default_stream(device));
}
inline CUDAStream getCurrentCUDAStream(::brasa::DeviceIndex device = -1) {
  return CUDAStream(::brasa::cuda::current_stream(device));
}
inline void setCurrentCUDAStream(const CUDAStream& stream) { ::brasa::set_current_stream(stream.unwrap()); }
inline std::ostream& operator<<(std::ostream& out, const CUDAStream& s) { return out << s.unwrap(); }

}  // namespace c10::cuda

namespace at::cuda {
using ::c10::cuda::CUDAStream;
using ::c10::cuda::getCurrentCUDAStream;
using ::c10::cuda::getDefaultCUDAStream;
using ::c10::cuda::getStreamFromPool;
using ::c10::cuda::setCurrentCUDAStream;
}  // namespace at::cuda

template <>
struct std::hash<c10::cuda::CUDAStream> {
  size_t operator()(const c10::cuda::CUDAStream& s) const noexcept {
    return static_cast<size_t>(s.id()) << 8 | static_cast<uint8_t>(s.device_index());
  }
};
