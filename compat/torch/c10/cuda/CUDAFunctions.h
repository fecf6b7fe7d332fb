#pragma once

#include <torch/torch.h>

namespace c10::cuda {

using ::brasa::cuda::current_device;
using ::brasa::cuda::device_count;
inline ::brasa::DeviceIndex device_count_ensure_non_zero() {
  (void)current_device();  // says why there is none
  return device_count();
}
inline void set_device(::brasa::DeviceIndex device, bool = false) { ::brasa::cuda::set_device(device); }
inline ::brasa::DeviceIndex ExchangeDevice(::brasa::DeviceIndex device) {
  ::brasa::DeviceIndex before = current_device();
  set_device(device);
  return before;
}
inline void device_synchronize() { ::brasa::cuda::synchronize(); }

}  // namespace c10::cuda
