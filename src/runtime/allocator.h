#pragma once

#include <memory>
#include <mutex>

#include "runtime/device.h"

namespace brasa::runtime {

/// Where an Allocator gets memory from: a device's own, which is slow to ask.
class MemorySource {
 public:
  virtual ~MemorySource();
  /// Null where there is not as much.
  virtual void* take(size_t bytes) = 0;
  virtual void give_back(void* p, size_t bytes) = 0;
  /// Free and whole memory.
  virtual std::pair<size_t, size_t> room() = 0;
  /// Waits until no work uses memory that has been freed.
  virtual void finish() = 0;
  virtual Event mark(Stream stream) = 0;
  virtual bool reached(Event event) = 0;
};

/// Memory in large segments, cut into blocks that are kept for the stream that used them: work of one stream runs in order, so a block
/// can be given out again while earlier work with it is still on its way. Neighbours that are free become one block.
///
/// Where a request does not fit: a block that is kept, a new segment, the same after all unused segments went back, the same after
/// each round of callbacks, an OutOfMemoryError.
class Allocator {
 public:
  Allocator(brasa::Device device, MemorySource& source);
  ~Allocator();
  void* allocate(size_t bytes, Stream stream);
  void deallocate(void* p);
  void record_stream(void* p, Stream stream);
  void empty_cache();
  DeviceStats statistics() const;
  void reset_peaks();

 private:
  struct State;
  std::unique_ptr<State> s_;
};

}  // namespace brasa::runtime
