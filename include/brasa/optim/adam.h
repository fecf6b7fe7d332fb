#pragma once

#include <tuple>

#include <brasa/optim/each.h>

namespace brasa::optim {

/// What Adam and AdamW share: only the default of weight_decay and what it means differ.
template <class Derived>
struct BRASA_API AdamLikeOptions : public OptimizerTensorRateOptions<Derived> {
  using Betas = std::tuple<double, double>;
  AdamLikeOptions(double lr, double weight_decay) : lr_(lr), weight_decay_(weight_decay) {}
#define BRASA_ADAM_ARG(T, name)                      \
  Derived& name(const T& v) {                        \
    name##_ = v;                                     \
    return static_cast<Derived&>(*this);             \
  }                                                  \
  const T& name() const noexcept { return name##_; } \
  T& name() noexcept { return name##_; }
  BRASA_ADAM_ARG(double, lr)
  BRASA_ADAM_ARG(Betas, betas)
  BRASA_ADAM_ARG(double, eps)
  BRASA_ADAM_ARG(double, weight_decay)
  BRASA_ADAM_ARG(bool, amsgrad)
  BRASA_ADAM_ARG(bool, maximize)
#undef BRASA_ADAM_ARG
  void check() const;
  bool visit(FieldVisitor& f) override;

 private:
  double lr_;
  Betas betas_{0.9, 0.999};
  double eps_ = 1e-8;
  double weight_decay_;
  bool amsgrad_ = false;
  bool maximize_ = false;
};

struct BRASA_API AdamOptions : public AdamLikeOptions<AdamOptions> {
  AdamOptions(double lr = 1e-3) : AdamLikeOptions(lr, 0) {}  // NOLINT
  /// As AdamW's.
  BRASA_ARG(bool, decoupled_weight_decay) = false;

 public:
  bool visit(FieldVisitor& f) override;
};
struct BRASA_API AdamWOptions : public AdamLikeOptions<AdamWOptions> {
  AdamWOptions(double lr = 1e-3) : AdamLikeOptions(lr, 1e-2) {}  // NOLINT
};

struct BRASA_API AdamParamState : public OptimizerCountedParamState<AdamParamState> {
  BRASA_ARG(Tensor, exp_avg);
  BRASA_ARG(Tensor, exp_avg_sq);
  BRASA_ARG(Tensor, max_exp_avg_sq);
  BRASA_STATE_END;
};
using AdamWParamState = AdamParamState;

/// Kingma & Ba 2015: m ← β1 m + (1 - β1) g, v ← β2 v + (1 - β2) g², p ← p - lr m̂ / (sqrt(v̂) + eps); amsgrad: with the largest v so
/// far. weight_decay is added to the gradient.
BRASA_OPTIMIZER(Adam);

/// Adam with decoupled weight decay (Loshchilov & Hutter 2019): p ← p (1 - lr · weight_decay) before the update.
BRASA_OPTIMIZER(AdamW);

}  // namespace brasa::optim
