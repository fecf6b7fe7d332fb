#pragma once

#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>

namespace at::cuda {

/// A point in the work of a stream. As CUDA's flags say: with its time unless cudaEventDisableTiming is among them, which is the default.
class CUDAEvent {
 public:
  CUDAEvent() : CUDAEvent(cudaEventDisableTiming) {}
  explicit CUDAEvent(unsigned int flags) : event_((flags & cudaEventDisableTiming) == 0) {}

  bool isCreated() const { return event_.recorded(); }
  std::optional<::brasa::Device> device() const {
    return event_.recorded() ? std::optional(event_.device()) : std::nullopt;
  }
  ::brasa::DeviceIndex device_index() const { return event_.recorded() ? event_.device().index() : -1; }

  void record() { record(getCurrentCUDAStream()); }
  void record(const CUDAStream& stream) {
    TORCH_CHECK(!event_.recorded() || event_.device() == stream.device(), "Event device ", event_.device(),
                " does not match recording stream's device ", stream.device(), ".");
    event_.record(stream.unwrap());
  }
  void recordOnce(const CUDAStream& stream) {
    if (!event_.recorded()) record(stream);
  }
  void block(const CUDAStream& stream) const { event_.block(stream.unwrap()); }
  bool query() const { return event_.query(); }
  void synchronize() const { event_.synchronize(); }
  float elapsed_time(const CUDAEvent& end) const { return event_.elapsed_time(end.event_); }

 private:
  ::brasa::Event event_;
};

}  // namespace at::cuda
