#pragma once

#include "runtime/cuda/driver.h"
#include "runtime/device.h"
#include "support/small_vector.h"

namespace brasa::runtime::cuda {

/// A kernel's launch as the driver takes it. The kernel of several calls has one parameter: all slots.
class Parameters {
 public:
  /// The launch outlives it.
  explicit Parameters(const Launch& launch);
  Parameters(const Parameters&) = delete;
  /// `early`: while what the stream was given before still runs, if the kernel waits for that.
  void launch(StreamHandle stream, bool early);
  void change(RunnableHandle runnable, NodeHandle node);

 private:
  NodeParameters node_ = {};
  SmallVector<void*, 64> slots_;
};

/// Begins to keep what the stream is given.
void begin_capture(StreamHandle stream);
/// What such a stream was given last.
NodeHandle last_of(StreamHandle stream);

/// Of a stream that began to keep. The device is current in this thread whenever it is used.
class Graph {
 public:
  explicit Graph(StreamHandle stream);
  ~Graph();
  Graph(const Graph&) = delete;
  RunnableHandle runnable() const { return runnable_; }

 private:
  GraphHandle graph_ = nullptr;
  RunnableHandle runnable_ = nullptr;
};

}  // namespace brasa::runtime::cuda
