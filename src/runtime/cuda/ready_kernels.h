#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/cuda/ways.h"
#include "runtime/device.h"

// Kernels whose text this library writes itself, loaded when they are first needed.
namespace brasa::runtime::cuda {

/// A kernel's text and how to launch it.
struct WrittenKernel {
  std::string name, text;
  int threads, shared_bytes = 0;  // that its launch gives, where the text has none of its own
  bool hopper = false;            // for GPUs of capability 9.0 alone
};

/// A kernel on one device.
struct ReadyKernel {
  std::shared_ptr<const Module> module;
  Function function = nullptr;
  int threads = 0, shared_bytes = 0;

  void launch(int64_t blocks, std::span<const Slot> slots, Device& device, Stream stream) const {
    device.launch({.kernel = function,
                   .slots = slots,
                   .count = blocks,
                   .threads = threads,
                   .scratch_bytes = static_cast<size_t>(shared_bytes)},
                  stream);
  }
};

/// What `write` makes of this kind, on this device.
template <class Kind>
const ReadyKernel& ready_kernel(WrittenKernel (*write)(const Kind&), const Kind& kind, Device& device) {
  struct Kernels {
    std::mutex mutex;
    std::map<std::pair<WrittenKernel (*)(const Kind&), Kind>, ReadyKernel> ready;
  };
  Kernels& all = kept_of<Kernels>(device);
  std::lock_guard lock(all.mutex);
  auto it = all.ready.find({write, kind});
  if (it != all.ready.end()) return it->second;
  WrittenKernel kernel = write(kind);
  std::shared_ptr<const Module> module = device.load(
      {kernel.hopper ? "nvptx+sm_90a" : "nvptx+sm_80", {{kernel.name}}, {kernel.text.begin(), kernel.text.end()}});
  Function function = module->kernel(kernel.name);
  return all.ready[{write, kind}] = {std::move(module), function, kernel.threads, kernel.shared_bytes};
}

/// Memory for work of a stream that is given before this ends.
class Scratch {
 public:
  Scratch(size_t bytes, Device& device, Stream stream)
      : device_(device), stream_(stream), bytes_(bytes), data_(device.allocate(bytes, stream)) {}
  ~Scratch() { device_.deallocate(data_, bytes_, stream_); }
  Scratch(const Scratch&) = delete;
  Slot address() const { return reinterpret_cast<Slot>(data_); }

 private:
  Device& device_;
  Stream stream_;
  size_t bytes_;
  void* data_;
};

}  // namespace brasa::runtime::cuda
