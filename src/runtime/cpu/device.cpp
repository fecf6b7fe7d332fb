#include "runtime/cpu/device.h"

#include <unistd.h>

#include <cstring>

#include "runtime/cpu/allocator.h"
#include "runtime/cpu/code.h"
#include "runtime/cpu/examine.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/launch.h"
#include "runtime/thread_pool.h"
#include "support/lazy.h"

namespace brasa::runtime::cpu {
namespace {

Properties properties() {
  Properties p;
  p.name = "host";
  p.memory = static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE));
  p.processors = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  p.target = p.code = host_target();
  p.on_host = true;
  p.libraries.insert(p.libraries.begin(), {"fourier", "attention_blocks"});
  return p;
}

// Memory comes from its own allocator, whose blocks belong to no stream: work is done when a call returns.
class Host final : public Device {
 public:
  Host() : Device(brasa::Device(kCPU), runtime::cpu::properties()) {}

  void* allocate(size_t bytes, Stream) override { return cpu::allocate(bytes); }
  void deallocate(void* p, size_t bytes, Stream) override { cpu::deallocate(p, bytes); }
  DeviceStats statistics() const override {
    MemoryStats s = memory_stats();
    DeviceStats out;
    out.allocated_bytes.current = out.active_bytes.current = s.allocated;
    out.allocated_bytes.peak = out.active_bytes.peak = s.peak;
    out.reserved_bytes.current = s.allocated + s.cached;
    return out;
  }
  void reset_peaks() override { reset_peak_memory_stats(); }
  void empty_cache() override { cpu::empty_cache(); }
  std::pair<size_t, size_t> memory() const override {
    return {static_cast<size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGESIZE)),
            Device::properties().memory};
  }

  void synchronize(Stream) override {}
  void synchronize() override {}
  void upload(void* to, const void* from, size_t bytes, Stream, bool) override { move(to, from, bytes); }
  void download(void* to, const void* from, size_t bytes, Stream, bool) override { move(to, from, bytes); }
  void copy(void* to, const void* from, size_t bytes, Stream) override { move(to, from, bytes); }
  void fill(void* p, uint8_t byte, size_t bytes, Stream) override {
    if (bytes) std::memset(p, byte, bytes);
  }

  std::shared_ptr<const Module> load(const KernelImage& image) override;
  void launch(const Launch& l, Stream) override {
    cpu::launch(reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(l.kernel)), l.slots.data(), l.count,
                l.grain, l.scratch_bytes);
  }

 private:
  static void move(void* to, const void* from, size_t bytes) {
    if (bytes) std::memmove(to, from, bytes);
  }
};

std::shared_ptr<const Module> Host::load(const KernelImage& image) { return cpu::load(image); }

}  // namespace

const DeviceRow kRow = {
    .name = "cpu",
    .type = kCPU,
    .count = [] { return 1; },
    .device = [](int) -> Device& {
      static constinit Lazy<Host> host;  // never destroyed: tensors in static objects are given back at the end
      return *host;
    },
    .dlpack = 1,
    .examine = examine,
};

}  // namespace brasa::runtime::cpu
