#pragma once

#include <functional>

namespace brasa::runtime::emu {

/// A stream as a library knows it that works for GPUs that are not there: this is what Device::native_stream points to.
class NativeStream {
 public:
  virtual ~NativeStream() = default;
  /// Whether work on this device computes anything: a fake driver's does not.
  virtual bool computes() const = 0;
  /// Work behind what the stream was given before.
  virtual void add(std::function<void()> work) = 0;
  /// Where this work reaches what the program knows as `p`.
  virtual void* reach(const void* p) = 0;
};

}  // namespace brasa::runtime::emu
