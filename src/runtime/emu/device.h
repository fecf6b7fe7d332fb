#pragma once

#include "runtime/device.h"

namespace brasa::runtime::emu {

/// Two GPUs that are not there.
extern const DeviceRow kRow;

}  // namespace brasa::runtime::emu
