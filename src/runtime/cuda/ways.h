#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "runtime/device.h"
#include "runtime/measuring.h"
#include "support/lazy.h"
#include "support/str.h"

// What the files share that run calls of a library or kernels of our own.
namespace brasa::runtime::cuda {

/// The largest power of 2, up to `most`, that the address is a multiple of.
inline int64_t alignment(const void* p, int64_t most) {
  auto at = reinterpret_cast<uintptr_t>(p) | static_cast<uintptr_t>(most);
  return static_cast<int64_t>(at & -at);
}

/// How many pieces of this size, the last of which may be shorter.
inline int64_t pieces(int64_t size, int64_t piece) { return (size + piece - 1) / piece; }

inline bool is_hopper(const Device& device) { return device.properties().limits.major == 9; }

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

/// The same where `measuring` has no choice from an earlier process, and time. `key`: of what, and of which library; without a measurement 0.
template <class Run>
size_t chosen(size_t count, int runs, const std::string& key, Measuring& measuring, Device& device, Stream stream,
              const Run& run) {
  if (count < 2) return 0;
  std::string whole = str(key, " of ", count);
  if (std::optional<size_t> kept = measuring.kept(whole); kept && *kept < count) return *kept;
  if (!measuring.has_time()) return 0;
  size_t best = quickest(count, runs, device, stream, run);
  measuring.keep(whole, best);
  return best;
}

/// Memory for work of a stream that is given before this ends.
class Scratch {
 public:
  Scratch(size_t bytes, Device& device, Stream stream)
      : device_(device), stream_(stream), bytes_(bytes), data_(device.allocate(bytes, stream)) {}
  ~Scratch() { device_.deallocate(data_, bytes_, stream_); }
  Scratch(const Scratch&) = delete;
  void* data() const { return data_; }
  Slot address() const { return reinterpret_cast<Slot>(data_); }

 private:
  Device& device_;
  Stream stream_;
  size_t bytes_;
  void* data_;
};

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
