#pragma once

#include "runtime/device.h"

namespace brasa::runtime::cuda {

/// NVIDIA's GPUs, by the driver's interface alone.
extern const DeviceRow kRow;

}  // namespace brasa::runtime::cuda
