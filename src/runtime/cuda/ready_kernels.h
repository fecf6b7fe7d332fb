#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/cuda/ways.h"
#include "runtime/device.h"
#include "support/mutex.h"

// Kernels whose text this library writes itself, loaded when they are first needed.
namespace brasa::runtime::cuda {

/// A kernel's text and how to launch it.
struct WrittenKernel {
  std::string name, text;
  int threads, shared_bytes = 0;  // that its launch gives, where the text has none of its own
  bool hopper = false;            // for GPUs of capability 9.0 alone
  int rows = 0;                   // of a block, where its launch counts blocks by rows
};

/// A kernel on one device.
struct ReadyKernel {
  std::shared_ptr<const Module> module;
  Function function = nullptr;
  int threads = 0, shared_bytes = 0, rows = 0;

  void launch(int64_t blocks, std::span<const Slot> slots, Device& device, Stream stream,
              std::span<const TensorMap> maps = {}) const {
    device.launch({.kernel = function,
                   .slots = slots,
                   .count = blocks,
                   .threads = threads,
                   .scratch_bytes = static_cast<size_t>(shared_bytes),
                   .maps = maps},
                  stream);
  }
};

/// What `write` makes of this kind, on this device.
template <class Kind>
const ReadyKernel& ready_kernel(WrittenKernel (*write)(const Kind&), const Kind& kind, Device& device) {
  struct Kernels {
    Mutex mutex;
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
  return all.ready[{write, kind}] = {std::move(module), function, kernel.threads, kernel.shared_bytes, kernel.rows};
}

}  // namespace brasa::runtime::cuda
