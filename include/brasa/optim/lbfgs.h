#pragma once

#include <optional>
#include <string>
#include <vector>

#include <brasa/optim/optimizer.h>

namespace brasa::optim {

struct BRASA_API LBFGSOptions : public OptimizerCloneableOptions<LBFGSOptions> {
  LBFGSOptions(double lr = 1) : lr_(lr) {}  // NOLINT
  BRASA_ARG(double, lr);
  BRASA_ARG(int64_t, max_iter) = 20;
  /// Of the closure in one step; max_iter · 5 / 4 by default.
  BRASA_ARG(std::optional<int64_t>, max_eval) = std::nullopt;
  BRASA_ARG(double, tolerance_grad) = 1e-7;
  BRASA_ARG(double, tolerance_change) = 1e-9;
  BRASA_ARG(int64_t, history_size) = 100;
  /// "strong_wolfe", or steps of lr.
  BRASA_ARG(std::optional<std::string>, line_search_fn) = std::nullopt;
  /// A line search stops at max_eval, as in Python's torch.optim; LibTorch's takes up to 25 calls more.
  BRASA_ARG(bool, search_within_max_eval) = false;
  BRASA_ARG(bool, maximize) = false;

 public:
  bool visit(FieldVisitor& f) override;
};

struct BRASA_API LBFGSParamState : public OptimizerCloneableParamState<LBFGSParamState> {
  BRASA_ARG(int64_t, func_evals) = 0;
  BRASA_ARG(int64_t, n_iter) = 0;
  BRASA_ARG(double, t) = 0;
  BRASA_ARG(double, prev_loss) = 0;
  BRASA_ARG(Tensor, d) = {};
  BRASA_ARG(Tensor, H_diag) = {};
  BRASA_ARG(Tensor, prev_flat_grad) = {};
  /// Differences of gradients and steps, oldest first, and 1 / (y · s).
  BRASA_ARG(std::vector<Tensor>, old_dirs);
  BRASA_ARG(std::vector<Tensor>, old_stps);
  BRASA_ARG(std::vector<Tensor>, ro);

 public:
  bool visit(FieldVisitor& f) override;
};

/// Limited-memory BFGS (Nocedal & Wright 2006, §7.2) over all parameters as one vector; one group only. `step` needs a closure that
/// computes the loss and its gradients anew, and calls it several times.
class BRASA_API LBFGS : public Optimizer {
 public:
  explicit LBFGS(const std::vector<OptimizerParamGroup>& param_groups, LBFGSOptions defaults = {});
  explicit LBFGS(std::vector<Tensor> params, LBFGSOptions defaults = {})
      : LBFGS(std::vector<OptimizerParamGroup>{OptimizerParamGroup(std::move(params))}, std::move(defaults)) {}
  Tensor step(LossClosure closure) override;

 protected:
  std::unique_ptr<OptimizerParamState> new_state() const override;
};

}  // namespace brasa::optim
