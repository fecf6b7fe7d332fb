#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/device.h"

// What the files share that run calls of a library, each of which it may know several ways to compute.
namespace brasa::runtime::cuda {

/// The largest power of 2, up to `most`, that the address is a multiple of.
inline int64_t alignment(const void* p, int64_t most) {
  auto at = reinterpret_cast<uintptr_t>(p) | static_cast<uintptr_t>(most);
  return static_cast<int64_t>(at & -at);
}

/// Which of `count` ways takes the least time; 0 where none runs. `run(i)` gives way i to the stream, and a status other than 0 where it cannot.
/// They take turns, and find in the caches what others leave there, as between the kernels of a step.
template <class Run>
size_t quickest(size_t count, int runs, Device& device, Stream stream, const Run& run) {
  constexpr size_t kOthers = size_t{128} << 20;
  std::vector<size_t> able;
  for (size_t i = 0; i < count; ++i)
    if (run(i) == 0) able.push_back(i);
  if (able.size() < 2) return able.empty() ? 0 : able[0];
  void* others = device.allocate(kOthers, stream);
  std::vector<std::array<std::unique_ptr<TimeMark>, 2>> marks;
  for (int k = 0; k < runs; ++k)
    for (size_t i : able) {
      device.fill(others, 0, kOthers, stream);
      std::unique_ptr<TimeMark> start = device.mark_time(stream);
      run(i);
      marks.push_back({std::move(start), device.mark_time(stream)});
    }
  device.deallocate(others, kOthers, stream);
  std::vector<double> times(able.size());
  for (size_t m = 0; m < marks.size(); ++m) times[m % able.size()] += marks[m][1]->since(*marks[m][0]);
  return able[static_cast<size_t>(std::min_element(times.begin(), times.end()) - times.begin())];
}

/// What a library keeps of one device. Never destroyed, as devices are: work may end late.
template <class State>
State& kept_of(const Device& device) {
  static std::mutex mutex;
  static auto& all = *new std::map<const Device*, State*>;
  std::lock_guard lock(mutex);
  State*& state = all[&device];
  if (!state) state = new State;
  return *state;
}

}  // namespace brasa::runtime::cuda
