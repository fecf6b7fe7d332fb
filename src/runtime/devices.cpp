#include "runtime/cpu/device.h"
#include "runtime/cuda/device.h"
#include "runtime/emu/device.h"

// The list of devices. To add one: a folder beside this file with its row, and a line here.
namespace brasa::runtime {

extern const DeviceRow* const kDeviceRows[] = {&cpu::kRow, &cuda::kRow, &emu::kRow};
extern const size_t kDeviceRowCount = std::size(kDeviceRows);

}  // namespace brasa::runtime
