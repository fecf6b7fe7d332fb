#include "runtime/cpu/launch.h"

#include "runtime/cpu/allocator.h"
#include "runtime/thread_pool.h"
#include "support/thread_object.h"

namespace brasa::runtime::cpu {
namespace {

// Grows to the largest request of its thread.
struct Scratch {
  void* data = nullptr;
  size_t size = 0;
  ~Scratch() { deallocate(data, size); }
  void* get(size_t bytes) {
    if (bytes > size) {
      deallocate(data, size);
      size = 0;
      data = allocate(bytes);
      size = bytes;
    }
    return data;
  }
};

void* scratch(size_t bytes) {
  Scratch* memory = ThreadObject<Scratch>::get();
  // Destructors at the thread's end may still run kernels, whose memory nobody is left to free.
  return memory ? memory->get(bytes) : allocate(bytes);
}

}  // namespace

void launch(KernelFunction kernel, const Slot* slots, int64_t count, int64_t grain, size_t scratch_bytes) {
  if (count <= grain || in_parallel_region()) {
    if (count > 0) kernel(slots, 0, count, scratch_bytes ? scratch(scratch_bytes) : nullptr);
    return;
  }
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    kernel(slots, begin, end, scratch_bytes ? scratch(scratch_bytes) : nullptr);
  });
}

}  // namespace brasa::runtime::cpu
