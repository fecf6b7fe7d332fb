#pragma once

#include <tuple>

#include <brasa/optim/each.h>

namespace brasa::optim {

struct BRASA_API SparseAdamOptions : public OptimizerTensorRateOptions<SparseAdamOptions> {
  using betas_t = std::tuple<double, double>;
  SparseAdamOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(betas_t, betas) = std::make_tuple(0.9, 0.999);
  BRASA_ARG(double, eps) = 1e-8;
  BRASA_ARG(bool, maximize) = false;
  BRASA_OPTIONS_END;
};
struct BRASA_API SparseAdamParamState : public OptimizerCountedParamState<SparseAdamParamState> {
  BRASA_ARG(Tensor, exp_avg);
  BRASA_ARG(Tensor, exp_avg_sq);
  BRASA_STATE_END;
};
/// Adam where a sparse gradient has an entry: elsewhere neither the parameter nor its running means change. brasa::Error for a
/// dense gradient.
BRASA_OPTIMIZER(SparseAdam);

}  // namespace brasa::optim
