#pragma once

#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include <brasa/autograd.h>

#include "capture/functional.h"
#include "runtime/device.h"
#include "tensor/autocast.h"
#include "tensor/dispatch.h"

namespace brasa::func {

/// What a value inside a transformed function stands for outside of it.
struct Lift {
  Tensor value;
  Tensor tangent;       // jvp: absent means zero
  bool lifted = false;  // vmap: `value` holds all calls, one behind the other; jvp: there is a tangent
};

/// A function runs on tensors that are only recorded, while a Level does each of its operators outside in a transformed form at
/// once. Recorders nest: what a Level calls goes to the recorder around it.
class Level : public capture::Functional {
 public:
  ~Level() override { lose(); }

  struct Around {
    Recorder* recorder = nullptr;
    bool grad_mode = false;
  };
  /// Makes this the thread's recorder, inside the present one, which gets what this calls, under the present GradMode.
  class Scope {
   public:
    explicit Scope(Level& level)
        : level_(level),
          before_(std::exchange(level.around_, {Recorder::current(), GradMode::is_enabled()})),
          here_(&level) {}
    ~Scope() { level_.around_ = before_; }
    Scope(const Scope&) = delete;

   private:
    Level& level_;
    Around before_;
    Recorder::Scope here_;
    eager::CastCache casts_;
  };

  /// A tensor of the function's that stands for this.
  Tensor wrap(Lift lift);
  /// What a tensor stands for; one from outside stands for itself.
  Lift unwrap(const Tensor& t);

  uint32_t last_call() const override { return 0; }
  void moves(const Tensor& t) override {
    if (around_.recorder) around_.recorder->moves(t);
  }
  void made(const std::shared_ptr<autograd::Node>&, uint32_t, std::span<const Tensor>) override {}
  void materialise(const char* reason) override;
  Tensor known(const Tensor& t) override;
  void detached(const Tensor& t) override;
  void write(const Tensor& target, const Tensor& value) override;
  Tensor snapshot(const Tensor& t) override;

 protected:
  /// The row for these operands, some of which are lifted (by defined tensor, in order), and how its results are to be seen.
  virtual std::vector<Lift> transformed(const ops::Row& row, std::vector<CallArg> args,
                                        const std::vector<const Lift*>& operands) = 0;
  /// The key of a random row's draw as the calls are to have it, for results on this device.
  virtual Lift drawn(const ops::Row&, const Tensor& key, const runtime::Device&) { return {key, {}, false}; }
  /// What a detached tensor stands for.
  virtual Lift without_derivatives(Lift lift) const { return {lift.value.detach(), {}, lift.lifted}; }
  /// The sizes that the function sees.
  virtual Sizes inner_sizes(const Lift& lift) const = 0;
  virtual const char* name() const = 0;

 private:
  capture::Number record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                         uint32_t& count) override;
  capture::Number record_put(const ops::Row& view, int result, std::span<const CallArg> args, const Operands& operands,
                             capture::Number value) override;
  capture::Number outside(const Tensor& t) override;
  void place(std::span<const CallArg>) override {}
  bool may_hold(const Tensor& target, capture::Number& value) override;
  capture::Held& hold_outside(const Tensor& t) override;
  capture::Number seen(const Tensor& t, capture::Number n) override;
  Tensor make_recorded(capture::Number n) override;

  bool is_detached(const Tensor& t) const;

  Around around_;
  std::vector<Lift> values_;                 // by number
  std::unordered_set<const Storage*> keys_;  // that the function has drawn by; `values_` keeps them
  std::unordered_map<const TensorImpl*, Tensor> detached_;
};

}  // namespace brasa::func
