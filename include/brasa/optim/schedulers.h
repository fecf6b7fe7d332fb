#pragma once

#include <vector>

#include <brasa/optim/optimizer.h>

namespace brasa::optim {

/// Sets the groups' learning rates; `step()` once after each epoch (or step) of the optimizer.
class BRASA_API LRScheduler {
 public:
  explicit LRScheduler(Optimizer& optimizer);
  virtual ~LRScheduler();
  virtual void step();

 protected:
  /// The rates for the call of `step()` before which there were step_count_ others.
  virtual std::vector<double> get_lrs() = 0;
  std::vector<double> get_current_lrs() const;
  void set_optimizer_lrs(const std::vector<double>& lrs);
  Optimizer& optimizer() const { return optimizer_; }

  unsigned step_count_ = 0;

 private:
  Optimizer& optimizer_;
};

/// lr · gamma after every step_size steps. As in LibTorch the first call of `step()` is number 0: the rate changes with call
/// step_size + 1, where lr_scheduler::StepLR, which like Python's takes the first step itself, changes it with call step_size.
class BRASA_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, unsigned step_size, double gamma = 0.1);

 private:
  std::vector<double> get_lrs() override;
  unsigned step_size_;
  double gamma_;
};

}  // namespace brasa::optim
