#pragma once

#include <cstdint>
#include <type_traits>

namespace brasa::runtime {

/// Threads that take part in a parallel_for, the caller included: BRASA_NUM_THREADS, or the CPUs this process may use.
int thread_count();
/// Takes effect at the next parallel_for; 1 <= n.
void set_thread_count(int n);
/// True inside the body of a parallel_for.
bool in_parallel();

using RangeBody = void (*)(void* context, int64_t begin, int64_t end);
/// Calls `body` on disjoint pieces of [0, n) that together cover it, on several threads, and returns when all are
/// done. No piece but the last is shorter than `grain`. Serial where n <= grain, in a nested call, and while another
/// thread has the pool. The first exception of a body is rethrown here; pieces not yet started are then left out.
void parallel_for(int64_t n, int64_t grain, RangeBody body, void* context);

template <class F>
void parallel_for(int64_t n, int64_t grain, F&& f) {
  using Body = std::remove_reference_t<F>;
  parallel_for(
      n, grain, [](void* context, int64_t begin, int64_t end) { (*static_cast<Body*>(context))(begin, end); },
      const_cast<void*>(static_cast<const void*>(&f)));
}

}  // namespace brasa::runtime
