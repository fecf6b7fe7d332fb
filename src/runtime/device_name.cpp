#include <algorithm>
#include <charconv>
#include <ostream>

#include "runtime/device.h"
#include "support/error.h"

// Devices as text: "cuda:1". The kinds with a row go by the row's name, PyTorch's others by PyTorch's.
namespace brasa {
namespace {

constexpr std::string_view kOtherNames[] = {"cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga",
                                            "",    "xla",  "vulkan", "metal",  "xpu",    "mps",   "meta"};

std::string_view name_of(DeviceType t) {
  if (const runtime::DeviceRow* row = runtime::find_device_row(t)) return row->name;
  auto i = static_cast<size_t>(t);
  return i < std::size(kOtherNames) ? kOtherNames[i] : "unknown";
}

}  // namespace

std::ostream& operator<<(std::ostream& out, DeviceType t) { return out << name_of(t); }

Device::Device(std::string_view text) : type_(kCPU), index_(-1) {
  size_t colon = text.find(':');
  std::string_view type = text.substr(0, colon);
  if (const runtime::DeviceRow* row = runtime::find_device_row(type)) {
    type_ = row->type;
  } else {
    const auto* found = std::find(std::begin(kOtherNames), std::end(kOtherNames), type);
    BRASA_CHECK(!text.empty(), "Device string must not be empty");
    BRASA_CHECK(
        !type.empty() && found != std::end(kOtherNames),
        "Expected one of cpu, cuda, ipu, xpu, mkldnn, opengl, opencl, ideep, hip, ve, fpga, maia, xla, lazy, vulkan, mps, "
        "meta, hpu, mtia, privateuseone device type at start of device string: ",
        text);
    type_ = static_cast<DeviceType>(found - std::begin(kOtherNames));
  }
  if (colon == text.npos) return;
  std::string_view digits = text.substr(colon + 1);
  int index = -1;
  auto r = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  BRASA_CHECK(r.ec == std::errc() && r.ptr == digits.data() + digits.size() && index >= 0 && index < 128,
              "Invalid device string: '", text, "'");
  index_ = static_cast<int8_t>(index);
}
std::string Device::str() const {
  std::string out(name_of(type_));
  return index_ >= 0 ? out + ":" + std::to_string(index_) : out;
}
std::ostream& operator<<(std::ostream& out, Device d) { return out << d.str(); }

}  // namespace brasa
