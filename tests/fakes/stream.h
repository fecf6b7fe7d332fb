#pragma once

#include <utility>

#include "runtime/emu/native_stream.h"

namespace brasa::fakes {

/// The default stream, which has no name: of exported programs, whose memory is the host's. It computes at once.
class DefaultStream final : public runtime::emu::NativeStream {
 public:
  bool computes() const override { return true; }
  void add(std::function<void()> work) override { work(); }
  void* reach(const void* p) override { return const_cast<void*>(p); }
};
inline runtime::emu::NativeStream* stream_of(void* given) {
  static DefaultStream the_default;
  return given ? static_cast<runtime::emu::NativeStream*>(given) : &the_default;
}

}  // namespace brasa::fakes
