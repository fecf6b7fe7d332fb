#pragma once

#include <brasa/optim/optimizer.h>

namespace brasa::optim {

struct BRASA_API SGDOptions : public OptimizerTensorRateOptions<SGDOptions> {
  SGDOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(double, momentum) = 0;
  BRASA_ARG(double, dampening) = 0;
  BRASA_ARG(double, weight_decay) = 0;
  BRASA_ARG(bool, nesterov) = false;
  BRASA_ARG(bool, maximize) = false;

 public:
  bool visit(FieldVisitor& f) override;
};

struct BRASA_API SGDParamState : public OptimizerCloneableParamState<SGDParamState> {
  BRASA_ARG(Tensor, momentum_buffer);

 public:
  bool visit(FieldVisitor& f) override;
};

/// Gradient descent; with momentum μ: b ← μ b + (1 - dampening) g, p ← p - lr b (Nesterov: p - lr (g + μ b)).
class BRASA_API SGD : public Optimizer {
 public:
  explicit SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults);
  explicit SGD(std::vector<Tensor> params, SGDOptions defaults)
      : SGD(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}

 protected:
  void update(OptimizerParamGroup& group) override;
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace brasa::optim
