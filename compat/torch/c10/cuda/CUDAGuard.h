#pragma once

#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

namespace c10::cuda {

/// A GPU that is the current one while it lives.
class CUDAGuard {
 public:
  explicit CUDAGuard(::brasa::DeviceIndex index) : guard_(::brasa::cuda::device_of(index)) {}
  explicit CUDAGuard(::brasa::Device device) : guard_(checked(device)) {}
  void set_device(::brasa::Device device) { guard_.set_device(checked(device)); }
  void reset_device(::brasa::Device device) { set_device(device); }
  void set_index(::brasa::DeviceIndex index) { guard_.set_device(::brasa::cuda::device_of(index)); }
  ::brasa::Device original_device() const { return guard_.original_device(); }
  ::brasa::Device current_device() const { return guard_.current_device(); }

 private:
  static ::brasa::Device checked(::brasa::Device device) {
    TORCH_CHECK(device.is_cuda(), "expected a CUDA device, got ", device);
    return device;
  }
  DeviceGuard guard_;
};

class OptionalCUDAGuard : public OptionalGuard<CUDAGuard, ::brasa::Device> {
 public:
  using OptionalGuard::OptionalGuard;
  explicit OptionalCUDAGuard(std::optional<::brasa::DeviceIndex> index) {
    if (index) set_index(*index);
  }
  void set_device(::brasa::Device device) { guard_ ? guard_->set_device(device) : void(guard_.emplace(device)); }
  void reset_device(::brasa::Device device) { set_device(device); }
  void set_index(::brasa::DeviceIndex index) { set_device(::brasa::cuda::device_of(index)); }
  std::optional<::brasa::Device> original_device() const {
    return guard_ ? std::optional(guard_->original_device()) : std::nullopt;
  }
  std::optional<::brasa::Device> current_device() const {
    return guard_ ? std::optional(guard_->current_device()) : std::nullopt;
  }
};

/// A stream, and its GPU, that are the current ones while it lives.
class CUDAStreamGuard {
 public:
  explicit CUDAStreamGuard(const Stream& stream) : guard_(CUDAStream(stream).unwrap()) {}
  explicit CUDAStreamGuard(const CUDAStream& stream) : guard_(stream.unwrap()) {}
  void reset_stream(const Stream& stream) { guard_.reset_stream(CUDAStream(stream).unwrap()); }
  CUDAStream original_stream() const { return CUDAStream(guard_.original_stream()); }
  CUDAStream current_stream() const { return CUDAStream(guard_.current_stream()); }
  ::brasa::Device original_device() const { return guard_.original_device(); }
  ::brasa::Device current_device() const { return guard_.current_device(); }

 private:
  StreamGuard guard_;
};

class OptionalCUDAStreamGuard : public OptionalStreamGuard {
 public:
  OptionalCUDAStreamGuard() = default;
  explicit OptionalCUDAStreamGuard(const Stream& stream) : OptionalStreamGuard(CUDAStream(stream).unwrap()) {}
  explicit OptionalCUDAStreamGuard(const std::optional<Stream>& stream) : OptionalStreamGuard(stream) {}
};

/// Streams of different GPUs that are current on each while it lives.
class CUDAMultiStreamGuard {
 public:
  explicit CUDAMultiStreamGuard(::brasa::ArrayRef<CUDAStream> streams) {
    for (const CUDAStream& s : streams) {
      before_.push_back(getCurrentCUDAStream(s.device_index()));
      setCurrentCUDAStream(s);
    }
  }
  ~CUDAMultiStreamGuard() {
    for (size_t i = before_.size(); i > 0; --i) setCurrentCUDAStream(before_[i - 1]);
  }
  CUDAMultiStreamGuard(const CUDAMultiStreamGuard&) = delete;
  CUDAMultiStreamGuard& operator=(const CUDAMultiStreamGuard&) = delete;

 private:
  std::vector<CUDAStream> before_;
};

}  // namespace c10::cuda

namespace at::cuda {
using ::c10::cuda::CUDAGuard;
using ::c10::cuda::CUDAMultiStreamGuard;
using ::c10::cuda::CUDAStreamGuard;
using ::c10::cuda::OptionalCUDAGuard;
using ::c10::cuda::OptionalCUDAStreamGuard;
}  // namespace at::cuda
