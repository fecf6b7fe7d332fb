#pragma once

#include <vector>

#include <brasa/call.h>

#include "capture/workspace.h"
#include "support/pool_allocator.h"
#include "tensor/recorder.h"
#include "tensor/views.h"

namespace brasa::capture {

/// What recorders share that keep no memory but numbered values: which value each storage holds at present, how a view of it reads
/// that value, and what value a write through a view leaves. Calls of functional operators are all that remains for the recorder.
class Functional : public Recorder {
 public:
  void call(const ops::Row& row, std::span<const CallArg> args, eager::Results& results) override;
  void lay_out(const Tensor& result, const Sizes& strides) override;
  void moves(const Tensor&) override {}
  void write(const Tensor& target, const Tensor& value) override;
  Tensor snapshot(const Tensor& t) override;

 protected:
  // The tensors among a call's arguments, in order.
  using Operands = SmallVector<ir::Value, 8>;

  /// Records a call; gives its first result and, in `count`, how many follow each other. `view`: the first operand stands in
  /// for the first argument.
  virtual Number record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                        uint32_t& count) = 0;
  /// The first operand with `value` written where result `result` of the view looks.
  virtual Number record_put(const ops::Row& view, int result, std::span<const CallArg> args, const Operands& operands,
                            Number value) = 0;
  /// A tensor that this recording has not made and not written.
  virtual Number outside(const Tensor& t) = 0;
  /// Before a call: where its results will live.
  virtual void place(std::span<const CallArg> args) = 0;
  /// Before the first write to such memory; false if this has done the write.
  virtual bool may_hold(const Tensor& target, Number& value) = 0;
  virtual Held& hold_outside(const Tensor& t) = 0;
  /// A write is about to give a storage another value.
  virtual void changes(const Held&) {}
  /// The number that a call reads for a tensor, whose storage holds `n`.
  virtual Number seen(const Tensor& /*t*/, Number n) { return n; }
  /// A tensor of this value: by `hold_new`.
  virtual Tensor make_recorded(Number n) = 0;

  Number number_of(const Tensor& t);
  /// Reads a tensor through the chain of views that it is the end of.
  Number view_number(const Tensor& t);
  template <class Shape>
  Tensor hold_new(Number n, Shape&& shape, DType dtype, runtime::Device& device) {
    Tensor t = recorded_tensor(shape, dtype, this, static_cast<uint32_t>(held_.size()), device);
    held_.emplace_back(StorageRef(impl_of(t)->storage.get()), n, dtype, std::forward<Shape>(shape));
    return t;
  }
  void lose();

  std::vector<Held> held_;  // in order of appearance; a storage knows its slot
  uint32_t segments_ = 0;   // that have begun
  PooledMap<const Storage*, PooledVector<Tensor>> snapshots_;

 private:
  struct Way {
    SmallVector<const eager::ViewLink*, 8> links;
    SmallVector<Number, 8> starts;
  };
  Way way_to(const eager::ViewInfo& view);
  Number read_view(const ops::Row& row, std::span<const CallArg> args, Number first);
  Number read_view(const eager::ViewLink& link, Number from);
  void put_through(const eager::ViewInfo& view, Number value);
  Operands operands(std::span<const CallArg> args, Number first = kNoNumber);
  void put(const Tensor& target, Number value);
  void becomes(Held& held, Number value);
  Held* held(const Storage& storage);
  Held& hold(const Tensor& t);
  void keep_snapshots(const Storage* storage);
};

}  // namespace brasa::capture
