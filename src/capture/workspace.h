#pragma once

#include <vector>

#include "capture/bound_inputs.h"

namespace brasa::capture {

/// The present value of a storage, as long as its memory does not hold it.
class Held {
 public:
  /// The whole of a recorded storage. `shape` lives longer.
  Held(StorageRef s, Number n, DType d, const RowMajor& shape)
      : storage(std::move(s)), value(n), dtype(d), sizes_(&shape.sizes), strides_(&shape.strides) {}
  Held(StorageRef s, Number n, DType d, RowMajor&& shape) : Held(std::move(s), n, d, shape) {
    own(shape.sizes, shape.strides);
  }
  /// An input tensor that was written.
  Held(const TensorImpl& t, Number n, int in)
      : storage(t.storage), value(n), input(in), dtype(t.dtype), offset(t.offset) {
    own(t.sizes, t.strides);
  }

  StorageRef storage;
  Number value;
  int input = -1;  // whose memory takes the value in the end; -1 for recorded storages
  DType dtype;
  int64_t offset = 0;
  const Sizes& sizes() const { return *sizes_; }
  const Sizes& strides() const { return *strides_; }
  void lay_out(const Sizes& strides) { own(sizes(), strides); }

  /// Whether a tensor of the storage is the whole value.
  bool covers(const TensorImpl& t) const {
    return (t.whole && input < 0) || covers(t.dtype, t.sizes, t.strides, t.offset);
  }
  bool covers(DType d, const Sizes& size, const Sizes& stride, int64_t at) const {
    return dtype == d && offset == at && sizes() == size && strides() == stride;
  }

 private:
  struct Geometry : Pooled {
    Geometry(const Sizes& of, const Sizes& by) : sizes(of), strides(by) {}
    Sizes sizes, strides;
  };
  void own(const Sizes& of, const Sizes& by) {
    own_ = std::make_unique<Geometry>(of, by);
    sizes_ = &own_->sizes;
    strides_ = &own_->strides;
  }

  const Sizes *sizes_, *strides_;
  std::unique_ptr<Geometry> own_;
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
