#pragma once

#include <string>
#include <tuple>

#include <brasa/optim/each.h>

namespace brasa::optim {

struct BRASA_API MuonOptions : public OptimizerCloneableOptions<MuonOptions> {
  using coefficients_t = std::tuple<double, double, double>;
  MuonOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, weight_decay) = 0.1;
  BRASA_ARG(double, momentum) = 0.95;
  BRASA_ARG(bool, nesterov) = true;
  /// Of the polynomial a x + b x³ + c x⁵ that takes singular values towards 1.
  BRASA_ARG(coefficients_t, ns_coefficients) = { 3.4445, -4.7750, 2.0315 };
  BRASA_ARG(double, eps) = 1e-7;
  BRASA_ARG(int64_t, ns_steps) = 5;
  /// How the rate goes with a matrix's sizes: "original", sqrt(max(1, rows / columns)), or "match_rms_adamw", 0.2 sqrt(max(rows,
  /// columns)).
  BRASA_ARG(std::string, adjust_lr_fn) = "original";
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API MuonParamState : public OptimizerCloneableParamState<MuonParamState> {
  BRASA_ARG(Tensor, momentum_buffer);
  BRASA_STATE_END;
};
/// Jordan et al. 2024: the momentum made orthogonal by Newton-Schulz steps in bfloat16. For matrices only; brasa::Error for a
/// parameter of other than two dimensions.
BRASA_OPTIMIZER(Muon);

}  // namespace brasa::optim
