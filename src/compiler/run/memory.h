#pragma once

#include <utility>

#include "runtime/device.h"

namespace brasa::compiler {

/// Memory of a device for work of a stream.
struct Memory {
  runtime::Device& device;
  size_t bytes;
  runtime::Stream stream;
  std::byte* data;
  Memory(runtime::Device& d, size_t n, runtime::Stream s)
      : device(d), bytes(n), stream(s), data(static_cast<std::byte*>(n ? d.allocate(n, s) : nullptr)) {}
  Memory(Memory&& o) noexcept
      : device(o.device), bytes(o.bytes), stream(o.stream), data(std::exchange(o.data, nullptr)) {}
  ~Memory() {
    if (data) device.deallocate(data, bytes, stream);
  }
};

}  // namespace brasa::compiler
