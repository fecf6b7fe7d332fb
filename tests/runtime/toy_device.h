#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>

#include "runtime/cpu/code.h"
#include "runtime/cpu/features.h"
#include "runtime/cpu/launch.h"
#include "runtime/device.h"

// A device of a test's own: what another one has to bring. It works at once, in memory that it counts.
namespace brasa::test {

constexpr auto kToy = static_cast<DeviceType>(100);

class Toy final : public runtime::Device {
 public:
  Toy() : Device(brasa::Device(kToy, 0), properties_of_toy()) {}
  std::atomic<int64_t> held{0}, launches{0};

  void* allocate(size_t bytes, runtime::Stream) override {
    if (bytes == 0) return nullptr;
    held += static_cast<int64_t>(bytes);
    return std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  }
  void deallocate(void* p, size_t bytes, runtime::Stream) override {
    if (p) held -= static_cast<int64_t>(bytes);
    std::free(p);
  }
  DeviceStats statistics() const override {
    DeviceStats s;
    s.allocated_bytes.current = held;
    return s;
  }
  void reset_peaks() override {}
  void empty_cache() override {}
  std::pair<size_t, size_t> memory() const override { return {size_t{1} << 30, size_t{1} << 30}; }
  void synchronize(runtime::Stream) override {}
  void synchronize() override {}
  void upload(void* to, const void* from, size_t n, runtime::Stream, bool) override { move(to, from, n); }
  void download(void* to, const void* from, size_t n, runtime::Stream, bool) override { move(to, from, n); }
  void copy(void* to, const void* from, size_t n, runtime::Stream) override { move(to, from, n); }
  void fill(void* p, uint8_t byte, size_t n, runtime::Stream) override {
    if (n) std::memset(p, byte, n);
  }
  std::shared_ptr<const runtime::Module> load(const runtime::KernelImage& image) override {
    return runtime::cpu::load(image);
  }
  void launch(const runtime::Launch& l, runtime::Stream) override {
    ++launches;
    auto kernel = reinterpret_cast<runtime::cpu::KernelFunction>(reinterpret_cast<uintptr_t>(l.kernel));
    runtime::cpu::launch(kernel, l.slots.data(), l.count, l.grain, l.scratch_bytes);
  }
  void* error_word() override { return &word_; }

 private:
  static runtime::Properties properties_of_toy() {
    runtime::Properties p;
    p.name = "a toy";
    p.target = p.code = runtime::cpu::host_target();
    return p;
  }
  static void move(void* to, const void* from, size_t n) {
    if (n) std::memmove(to, from, n);
  }
  runtime::Slot word_ = 0;
};

inline Toy& toy() {
  static Toy& t = *new Toy;
  return t;
}

inline const runtime::DeviceRow kToyRow = {
    .name = "toy", .type = kToy, .count = [] { return 1; }, .device = [](int) -> runtime::Device& { return toy(); }};

/// Adds the row, once.
inline Toy& add_toy() {
  static const bool added = (runtime::add_device_row(kToyRow), true);
  (void)added;
  return toy();
}

}  // namespace brasa::test
