#pragma once

#include "runtime/device.h"

namespace brasa::runtime::cpu {

/// The host: one device, whatever its processors.
extern const DeviceRow kRow;

}  // namespace brasa::runtime::cpu
