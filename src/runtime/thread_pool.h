#pragma once

#include <cstdint>
#include <type_traits>

#include <brasa/threads.h>

namespace brasa::runtime {

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
