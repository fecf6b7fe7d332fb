#pragma once

#include <memory>
#include <mutex>

#include "runtime/device.h"

// Work that a device keeps in order to run it again and again as one call: CUDA's graphs.
namespace brasa::runtime {

class KeptWork {
 public:
  virtual ~KeptWork();
  /// The n-th launch has these slots from the next run on. Its kernel and its sizes are as they were.
  virtual void change(size_t n, const Launch& launch) = 0;
  /// Given to the stream that it was kept for, while the mutex is held.
  virtual void run(Stream stream) = 0;
  /// One for all work that may use the same memory: who holds it runs several in turn, and nothing else comes between.
  virtual std::mutex& mutex() const = 0;
  /// How often such work has run.
  virtual uint64_t runs() const = 0;
};

/// A device that can keep work. Memory of a stream that keeps it, once freed, belongs to what is kept for the same stream, which runs
/// in order, and to nothing else until none of that is left.
class KeepsWork {
 public:
  virtual ~KeepsWork();
  /// What the stream that this gives gets from now on is kept for `stream` and does not run. One thread at a time: others wait.
  virtual Stream begin_keeping(Stream stream) = 0;
  /// How many launches are kept so far.
  virtual size_t launches_kept() const = 0;
  /// In each case after `begin_keeping`: what was kept, or an error of the device.
  virtual std::unique_ptr<KeptWork> end_keeping() = 0;
};

}  // namespace brasa::runtime
