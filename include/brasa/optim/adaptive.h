#pragma once

#include <optional>
#include <tuple>

#include <brasa/optim/each.h>

namespace brasa::optim {

struct BRASA_API AdagradOptions : public OptimizerTensorRateOptions<AdagradOptions> {
  AdagradOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, lr_decay) = 0;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(double, initial_accumulator_value) = 0;
  BRASA_ARG(double, eps) = 1e-10;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API AdagradParamState : public OptimizerCountedParamState<AdagradParamState> {
  BRASA_ARG(Tensor, sum);
  BRASA_STATE_END;
  void begin(const Tensor& p, const AdagradOptions& o);
};
/// Duchi et al. 2011: s ← s + g², p ← p - lr / (1 + (t - 1) lr_decay) · g / (sqrt(s) + eps).
BRASA_OPTIMIZER(Adagrad);

struct BRASA_API RMSpropOptions : public OptimizerTensorRateOptions<RMSpropOptions> {
  RMSpropOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, alpha) = 0.99;
  BRASA_ARG(double, eps) = 1e-8;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(double, momentum) = 0;
  BRASA_ARG(bool, centered) = false;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API RMSpropParamState : public OptimizerCountedParamState<RMSpropParamState> {
  BRASA_ARG(Tensor, square_avg);
  BRASA_ARG(Tensor, momentum_buffer) = {};
  BRASA_ARG(Tensor, grad_avg) = {};
  BRASA_STATE_END;
};
/// Hinton: v ← α v + (1 - α) g², p ← p - lr · g / (sqrt(v) + eps); centered: by the variance instead of v.
BRASA_OPTIMIZER(RMSprop);

struct BRASA_API AdadeltaOptions : public OptimizerTensorRateOptions<AdadeltaOptions> {
  AdadeltaOptions(double lr = 1.0) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, rho) = 0.9;
  BRASA_ARG(double, eps) = 1e-6;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API AdadeltaParamState : public OptimizerCountedParamState<AdadeltaParamState> {
  BRASA_ARG(Tensor, square_avg);
  BRASA_ARG(Tensor, acc_delta);
  BRASA_STATE_END;
};
/// Zeiler 2012: Δ = sqrt(d + eps) / sqrt(v + eps) · g with running means v of g² and d of Δ².
BRASA_OPTIMIZER(Adadelta);

struct BRASA_API AdamaxOptions : public OptimizerTensorRateOptions<AdamaxOptions> {
  using betas_t = std::tuple<double, double>;
  AdamaxOptions(double lr = 2e-3) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(betas_t, betas) = { 0.9, 0.999 };
  BRASA_ARG(double, eps) = 1e-8;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API AdamaxParamState : public OptimizerCountedParamState<AdamaxParamState> {
  BRASA_ARG(Tensor, exp_avg);
  BRASA_ARG(Tensor, exp_inf);
  BRASA_STATE_END;
};
/// Kingma & Ba 2015, §7.1: Adam with the infinity norm, u ← max(β2 u, |g| + eps).
BRASA_OPTIMIZER(Adamax);

struct BRASA_API ASGDOptions : public OptimizerTensorRateOptions<ASGDOptions> {
  ASGDOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, lambd) = 1e-4;
  BRASA_ARG(double, alpha) = 0.75;
  BRASA_ARG(double, t0) = 1e6;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API ASGDParamState : public OptimizerCountedParamState<ASGDParamState> {
  /// The next step's size and its weight in the average, without dimensions;
  BRASA_ARG(Tensor, eta);
  BRASA_ARG(Tensor, mu);
  /// the averaged parameter.
  BRASA_ARG(Tensor, ax);
  BRASA_STATE_END;
  std::vector<Tensor*> numbers() override { return {&steps(), &eta(), &mu()}; }
};
/// Polyak & Juditsky 1992: gradient descent whose iterates are averaged beside it.
BRASA_OPTIMIZER(ASGD);

struct BRASA_API RpropOptions : public OptimizerCloneableOptions<RpropOptions> {
  using pair_t = std::tuple<double, double>;
  RpropOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(pair_t, etas) = { 0.5, 1.2 };
  BRASA_ARG(pair_t, step_sizes) = { 1e-6, 50.0 };
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API RpropParamState : public OptimizerCountedParamState<RpropParamState> {
  BRASA_ARG(Tensor, prev);
  BRASA_ARG(Tensor, step_size);
  BRASA_STATE_END;
};
/// Riedmiller & Braun 1993: a step size for each element, by the sign of its gradient alone.
BRASA_OPTIMIZER(Rprop);

struct BRASA_API NAdamOptions : public OptimizerTensorRateOptions<NAdamOptions> {
  using betas_t = std::tuple<double, double>;
  NAdamOptions(double lr = 2e-3) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(betas_t, betas) = { 0.9, 0.999 };
  BRASA_ARG(double, eps) = 1e-8;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(double, momentum_decay) = 4e-3;
  BRASA_ARG(bool, decoupled_weight_decay) = false;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API NAdamParamState : public OptimizerCountedParamState<NAdamParamState> {
  /// Of all momenta so far, without dimensions.
  BRASA_ARG(Tensor, mu_product);
  BRASA_ARG(Tensor, exp_avg);
  BRASA_ARG(Tensor, exp_avg_sq);
  BRASA_STATE_END;
  std::vector<Tensor*> numbers() override { return {&steps(), &mu_product()}; }
};
/// Dozat 2016: Adam with Nesterov's momentum.
BRASA_OPTIMIZER(NAdam);

struct BRASA_API RAdamOptions : public OptimizerTensorRateOptions<RAdamOptions> {
  using betas_t = std::tuple<double, double>;
  RAdamOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(betas_t, betas) = { 0.9, 0.999 };
  BRASA_ARG(double, eps) = 1e-8;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(bool, decoupled_weight_decay) = false;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API RAdamParamState : public OptimizerCountedParamState<RAdamParamState> {
  BRASA_ARG(Tensor, exp_avg);
  BRASA_ARG(Tensor, exp_avg_sq);
  BRASA_STATE_END;
};
/// Liu et al. 2020: Adam whose adaptive rate is left out while its variance cannot be told.
BRASA_OPTIMIZER(RAdam);

}  // namespace brasa::optim
