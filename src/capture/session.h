#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include <brasa/call.h>

#include "capture/joint.h"
#include "capture/path.h"
#include "capture/state.h"
#include "tensor/recorder.h"
#include "tensor/tensor_impl.h"

namespace brasa::capture {

/// One call of a compiled function: what its tensors are among the values of the path that it takes. Runs the segment's graph
/// at a break and at the end.
class Session final : public Recorder {
 public:
  explicit Session(detail::CompiledState& state);
  ~Session() override;

  void call(const ops::Row& row, std::span<const CallArg> args, std::vector<Tensor>& results) override;
  void write(const Tensor& target, const Tensor& value) override;
  Tensor snapshot(const Tensor& t) override;
  uint32_t last_call() const override { return static_cast<uint32_t>(path_->position() - 1); }
  void made(const std::shared_ptr<autograd::Node>& node, uint32_t call, std::span<const Tensor> results) override;
  void materialise(const char* reason) override;

  /// Runs what was recorded since the last break.
  void finish();

 private:
  // The present value of a storage, as long as its memory does not hold it.
  struct Held {
    StorageRef storage;
    Number value = kNoNumber;
    DType dtype;
    Sizes sizes, strides;  // of the value: the whole of a recorded storage, or the input tensor that was written
    int64_t offset = 0;
    int input = -1;  // whose memory takes the value in the end; -1 for recorded storages
  };
  struct BoundInput {
    Tensor tensor;
    Number number;
  };

  Number number_of(const Tensor& t);
  Number input_number(const Tensor& t);
  Number view_number(const Tensor& t);
  void put(const Tensor& target, Number value);
  // The tensors among a call's arguments, in order.
  using Operands = SmallVector<ir::Value, 8>;
  Operands operands(std::span<const CallArg> args, Number first = kNoNumber);
  Number follow(const ops::Row& row, std::span<const CallArg> args, Number first = kNoNumber);
  Tensor make_recorded(Number n);
  bool covers(const Held& held, const TensorImpl& t) const;
  bool holds(const Held& held, const TensorImpl& t) const;
  Held* held(const Storage& storage);
  Held& hold(const Tensor& t);
  void keep_snapshots(const Storage* storage);
  void run_segment();
  void begin(Place& place);
  Variant* variant_for(const std::vector<Delivery>& deliveries, const std::shared_ptr<const Joint>& joint);
  Variant compiled(const std::vector<Delivery>& deliveries, const std::shared_ptr<const Joint>& joint);
  void run(const Variant& variant, const std::vector<Held*>& fresh, const GradientFlow* flow);
  void run_uncompiled(const std::vector<Delivery>& deliveries);
  void deliver(bool compile);
  void lose();
  std::optional<GradientFlow> find_gradient_flow();
  std::shared_ptr<const Joint> joint_for(const GradientFlow& flow);
  std::shared_ptr<const Halves> compiled_halves(const std::shared_ptr<const Joint>& joint,
                                                const std::vector<Delivery>& deliveries,
                                                std::vector<ir::Fact>& assumed);
  bool serves(Joint& joint, const GradientFlow& flow);
  std::shared_ptr<Joint> record_joint(const GradientFlow& flow, const Joint* model);
  bool record_backward(Path& aside, const GradientFlow& flow, std::vector<Number>& gradients);
  void keep_for_backward(const Variant& variant, const std::vector<Held*>& fresh, SavedRun& run,
                         std::vector<compiler::Operand>& outputs);

  detail::CompiledState& state_;
  Path own_path_;
  Path* path_ = &own_path_;
  bool finished_ = false;

  std::vector<BoundInput> inputs_;
  std::unordered_map<const Storage*, SmallVector<int, 2>> inputs_of_;  // positions in inputs_ by the memory they read
  std::unordered_map<const Storage*, std::vector<Tensor>> snapshots_;
  std::vector<Held> held_;  // in order of appearance; a storage knows its slot
  std::vector<RecordedNode> nodes_;
  uint64_t first_sequence_ = 0;  // of autograd nodes made in this segment
};

}  // namespace brasa::capture
