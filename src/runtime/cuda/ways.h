#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/device.h"
#include "support/lazy.h"

// What the files share that run calls of a library, each of which it may know several ways to compute.
namespace brasa::runtime::cuda {

/// The largest power of 2, up to `most`, that the address is a multiple of.
inline int64_t alignment(const void* p, int64_t most) {
  auto at = reinterpret_cast<uintptr_t>(p) | static_cast<uintptr_t>(most);
  return static_cast<int64_t>(at & -at);
}

/// Which of `count` ways takes the least time; 0 where none runs. `run(i)` gives way i to the stream, and a status other than 0 where it cannot.
template <class Run>
size_t quickest(size_t count, int runs, Device& device, Stream stream, const Run& run) {
  double least = 1e30;
  size_t best = 0;
  for (size_t i = 0; i < count; ++i) {
    if (run(i) != 0) continue;
    std::unique_ptr<TimeMark> start = device.mark_time(stream);
    for (int k = 0; k < runs; ++k) run(i);
    double time = device.mark_time(stream)->since(*start);
    if (time < least) {
      least = time;
      best = i;
    }
  }
  return best;
}

/// What a library keeps of one device. Never destroyed, as devices are: work may end late.
template <class State>
State& kept_of(const Device& device) {
  static constinit Mutex mutex;
  static constinit Lazy<std::map<const Device*, State*>> all;
  std::lock_guard lock(mutex);
  State*& state = (*all)[&device];
  if (!state) state = new State;
  return *state;
}

}  // namespace brasa::runtime::cuda
