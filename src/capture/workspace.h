#pragma once

#include <vector>

#include "capture/bound_inputs.h"

namespace brasa::capture {

/// The present value of a storage, as long as its memory does not hold it.
struct Held {
  Held(StorageRef s, Number n, DType d, const Sizes& size, const Sizes& stride, int64_t at = 0, int in = -1)
      : storage(std::move(s)), value(n), dtype(d), sizes(size), strides(stride), offset(at), input(in) {}

  StorageRef storage;
  Number value;
  DType dtype;
  Sizes sizes, strides;  // of the value: the whole of a recorded storage, or the input tensor that was written
  int64_t offset;
  int input;  // whose memory takes the value in the end; -1 for recorded storages

  /// Whether a tensor of the storage is the whole value.
  bool covers(const TensorImpl& t) const { return covers(t.dtype, t.sizes, t.strides, t.offset); }
  bool covers(DType d, const Sizes& size, const Sizes& stride, int64_t at) const {
    return dtype == d && offset == at && sizes == size && strides == stride;
  }
};

/// The order in which the dimensions of a value lie in its memory, from outside; empty: row-major.
Order order_of(const Held& h);
/// The value with its dimensions in that order: row-major.
struct Layout {
  Sizes sizes, strides;
  explicit Layout(const Held& h);
};

/// Memory that a run gives to a value.
struct Fresh {
  StorageRef storage;
  DType dtype;
  Layout at;
};

/// Lists that every call fills anew; a thread hands them from one call to the next, so that they need not grow again.
struct Workspace {
  std::vector<Held> held;  // in order of appearance; a storage knows its slot
  BoundInputs inputs;

  /// Of a call of this thread that has ended; else a new one.
  static Workspace take();
  /// Both lists are empty.
  static void give(Workspace workspace);
};

}  // namespace brasa::capture
