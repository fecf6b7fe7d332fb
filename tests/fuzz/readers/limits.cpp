#include <brasa/error.h>
#include <malloc.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

#include "fuzz/readers/target.h"
#include "support/processor_time.h"

// Counts what operator new gives on this thread.
namespace {
thread_local size_t t_now = 0, t_peak = 0;

void* counted(size_t bytes, size_t alignment = 0) {
  void* p = alignment > alignof(std::max_align_t)
                ? std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)
                : std::malloc(bytes ? bytes : 1);
  if (!p) throw std::bad_alloc();
  t_now += malloc_usable_size(p);
  if (t_now > t_peak) t_peak = t_now;
  return p;
}
void uncounted(void* p) {
  if (!p) return;
  size_t bytes = malloc_usable_size(p);
  t_now -= bytes < t_now ? bytes : t_now;  // perhaps another thread's
  std::free(p);
}
}  // namespace

void* operator new(size_t bytes) { return counted(bytes); }
void* operator new[](size_t bytes) { return counted(bytes); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes); }
void* operator new(size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<size_t>(a)); }
void* operator new[](size_t bytes, std::align_val_t a) { return counted(bytes, static_cast<size_t>(a)); }
void operator delete(void* p) noexcept { uncounted(p); }
void operator delete[](void* p) noexcept { uncounted(p); }
void operator delete(void* p, size_t) noexcept { uncounted(p); }
void operator delete[](void* p, size_t) noexcept { uncounted(p); }
void operator delete(void* p, std::align_val_t) noexcept { uncounted(p); }
void operator delete[](void* p, std::align_val_t) noexcept { uncounted(p); }
void operator delete(void* p, size_t, std::align_val_t) noexcept { uncounted(p); }
void operator delete[](void* p, size_t, std::align_val_t) noexcept { uncounted(p); }

namespace brasa::fuzz {

namespace {

bool takes_too_much(const Outcome& out, const Target& target, std::string_view bytes) {
  return out.peak_bytes > target.times * bytes.size() + (1 << 20);
}

Outcome measured(const Target& target, std::string_view bytes) {
  Outcome out;
  size_t before = t_peak = t_now;
  const int64_t start = processor_time();  // whatever else the machine does
  try {
    out.read = target.run(bytes);
  } catch (const std::exception& e) {
    out.failure = e.what();
  }
  out.seconds = 1e-9 * static_cast<double>(processor_time() - start);
  out.peak_bytes = t_peak - before;
  return out;
}

}  // namespace

Outcome tried(const Target& target, std::string_view bytes) {
  constexpr double kSeconds = 1;
  Outcome out = measured(target, bytes);
  // What a process loads once, as the first kernel's pack, is no input's.
  if (out.failure.empty() && takes_too_much(out, target, bytes)) out = measured(target, bytes);
  if (out.failure.empty() && out.seconds > kSeconds) out.failure = "takes " + std::to_string(out.seconds) + " s";
  if (out.failure.empty() && takes_too_much(out, target, bytes))
    out.failure = "takes " + std::to_string(out.peak_bytes) + " bytes for " + std::to_string(bytes.size());
  return out;
}

}  // namespace brasa::fuzz
