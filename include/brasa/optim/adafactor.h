#pragma once

#include <optional>
#include <tuple>

#include <brasa/optim/each.h>

namespace brasa::optim {

struct BRASA_API AdafactorOptions : public OptimizerTensorRateOptions<AdafactorOptions> {
  using eps_t = std::tuple<std::optional<double>, double>;
  AdafactorOptions(double lr = 1e-2) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, beta2_decay) = -0.8;
  /// The least mean square of a gradient, by default the dtype's epsilon, and the least root mean square of a parameter.
  BRASA_ARG(eps_t, eps) = { std::nullopt, 1e-3 };
  /// The most that an update's root mean square may be.
  BRASA_ARG(double, d) = 1.0;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API AdafactorParamState : public OptimizerCountedParamState<AdafactorParamState> {
  /// Mean squares by row and column of a parameter of two dimensions or more, in the last two;
  BRASA_ARG(Tensor, row_var) = {};
  BRASA_ARG(Tensor, col_var) = {};
  /// of each element of a smaller one.
  BRASA_ARG(Tensor, variance) = {};
  BRASA_STATE_END;
};
/// Shazeer & Stern 2018: Adam without momentum whose second moment of a matrix is the product of its rows' and columns' means; steps
/// are relative to the parameter's size.
BRASA_OPTIMIZER(Adafactor);

}  // namespace brasa::optim
