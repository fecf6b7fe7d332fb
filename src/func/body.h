#pragma once

#include <string>
#include <vector>

#include "capture/functional.h"
#include "capture/trace.h"
#include "tensor/autocast.h"
#include "tensor/known_sizes.h"

namespace brasa::func {

/// What a function did, as calls of operators. What may differ from call to call without being another body is left out of it: a
/// size or count is the symbol with its place among FlowArguments::sizes, another number the argument with its place among `numbers`, and a
/// tensor that it began with or took from outside the place among `operands`.
struct RecordedBody {
  std::vector<capture::Event> events;  // without a row: an operand, whose place is its only argument
  std::vector<capture::Number> outputs;

  bool operator==(const RecordedBody& other) const;
  size_t hash() const;
};

/// What the recorded bodies of one call of control flow have in common.
struct FlowArguments {
  std::vector<Tensor> operands;
  std::vector<int64_t> sizes;
  std::vector<uint32_t> names;  // of the sizes in the recording around (see KnownSizes), 0 for those that have none
  std::vector<Scalar> numbers;
  /// The place of a tensor that a body takes from outside.
  size_t captured(const Tensor& t);
  size_t given = 0;  // the first operands, which are told apart even if they are one tensor
};

/// Runs a function on tensors that only record.
class BodyRecorder final : public capture::Functional {
 public:
  /// `what` names the function in errors: "cond: true_fn".
  BodyRecorder(FlowArguments& arguments, std::string what);
  ~BodyRecorder() override { lose(); }

  /// How a function sees an operand: all of it, an item of its first dimension, or as what a step before leaves, through which gradients flow
  /// or none do.
  enum class Part : uint8_t { Whole, Item, State, StateWithoutGradient };
  /// A tensor of the function's that stands for operand `place`.
  Tensor operand(size_t place, Part part = Part::Whole);
  /// f's results become the body's outputs.
  template <class F>
  RecordedBody run(F f) {
    std::vector<Tensor> results;
    Scope scope(this);
    KnownSizes::Scope known(outer_ ? &sizes_ : nullptr);
    eager::CastCache casts;
    results = f();
    return finished(results);
  }

  uint32_t last_call() const override { return 0; }
  void made(const std::shared_ptr<autograd::Node>&, uint32_t, std::span<const Tensor>) override {}
  void materialise(const char* reason) override;
  /// What the recording around stands for it knows of what is computed there: so a part of the function is computed before the branch or loop.
  std::optional<std::vector<Integer>> integers(const Tensor& t, const std::string& reader) override;
  std::optional<int64_t> item(const Tensor& t) override;

 private:
  capture::Number record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                         uint32_t& count) override;
  capture::Number record_put(const ops::Row& view, int result, std::span<const CallArg> args, const Operands& operands,
                             capture::Number value) override;
  capture::Number outside(const Tensor& t) override;
  void place(std::span<const CallArg> args) override;
  bool may_hold(const Tensor& target, capture::Number& value) override;
  capture::Held& hold_outside(const Tensor& t) override;
  void changes(const capture::Held& held) override;
  capture::Number seen(const Tensor& t, capture::Number n) override;
  Tensor make_recorded(capture::Number n) override;

  // What the recording around knows, inside: an operand's sizes are those that it has there.
  class KnownInside final : public KnownSizes {
   public:
    explicit KnownInside(BodyRecorder& body) : body_(body) {}
    std::optional<ir::Expr> size_of(const Tensor& t, int64_t dim) override { return body_.size_of(t, dim); }
    uint32_t name_of(ir::Expr e) override { return body_.outer_->name_of(e); }
    std::optional<ir::Expr> named(uint32_t name) const override { return body_.outer_->named(name); }
    Recorder* recorder() override { return body_.outer_->recorder(); }
    // A branch may not be taken.
    void require(const ir::Expr&, const std::string&) override {}

   private:
    BodyRecorder& body_;
  };

  RecordedBody finished(const std::vector<Tensor>& results);
  RecordedBody part_for(capture::Number n, FlowArguments& arguments) const;
  Tensor computed_before(const Tensor& t);
  capture::Number add(capture::Event event, std::span<const CallArg> args = {});
  capture::Number input(size_t place, ir::Type type);
  void leave_numbers_out(capture::Event& event, std::span<const CallArg> args);
  std::optional<ir::Expr> size_of(const Tensor& t, int64_t dim);

  FlowArguments& arguments_;
  std::string what_;
  RecordedBody body_;
  std::vector<ir::Type> types_;  // by number
  std::vector<bool> flows_;      // by number: gradients flow through it
  std::unordered_map<capture::Number, capture::Number> detached_;
  std::vector<bool> varies_;          // by number: inputs that differ from step to step
  std::vector<capture::Number> own_;  // by operand: its input, or kNoNumber
  size_t stand_ins_ = 0;              // how many of what is held stand for operands
  bool grad_mode_;
  runtime::Device* device_ = nullptr;
  Recorder* around_ = Recorder::current();
  KnownSizes* outer_ = KnownSizes::current();  // null: nobody asks
  KnownInside sizes_{*this};
};

}  // namespace brasa::func
