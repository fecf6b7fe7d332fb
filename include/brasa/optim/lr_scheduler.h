#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <brasa/optim/reduce_on_plateau.h>
#include <brasa/optim/schedulers.h>

/// The schedules of Python's torch.optim.lr_scheduler, which count as they do there: the constructor takes the first step, so that
/// the n-th call of `step()` sets the rates of epoch n. (optim::StepLR is LibTorch's, whose first call is number 0.) An epoch is
/// whatever lies between two calls. The optimizer must outlive its schedules.
namespace brasa::optim::lr_scheduler {

class BRASA_API LRScheduler : public optim::LRScheduler {
 public:
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;
  void step() final { advance(std::nullopt); }
  /// Goes to an epoch, where the rates follow from the initial ones; those that have no such form go on from the present rates.
  void step(double epoch) { advance(epoch); }
  /// The rates of the groups, as this schedule set them last.
  const std::vector<double>& get_last_lr() const { return last_lr_; }
  int64_t last_epoch() const { return last_epoch_; }
  virtual void save(serialize::OutputArchive& archive) const;
  virtual void load(serialize::InputArchive& archive);

 protected:
  /// Remembers each group's rate as its initial one, unless another schedule did.
  explicit LRScheduler(Optimizer& optimizer);
  /// By the last line of a schedule's constructor.
  void first_step();
  virtual void advance(std::optional<double> epoch);
  /// At last_epoch_, from the present rates.
  std::vector<double> get_lrs() override;
  /// The factor from the rate of the last epoch to that of last_epoch_.
  virtual double factor() const;
  /// The rates of an epoch from the initial ones.
  virtual std::optional<std::vector<double>> closed_form(int64_t epoch) const;
  /// base_lrs_, each times this.
  std::vector<double> scaled(double factor) const;
  void set_lrs(const std::vector<double>& lrs);
  /// Takes the first step back, for SequentialLR.
  virtual void undo() { --last_epoch_; }
  void set_momenta(const std::vector<double>& momenta);
  friend class SequentialLR;
  friend class ChainedScheduler;

  int64_t last_epoch_ = -1;
  std::vector<double> base_lrs_, last_lr_;
};

using Lambda = std::function<double(int64_t epoch)>;

/// The initial rate times f(epoch).
class BRASA_API LambdaLR : public LRScheduler {
 public:
  LambdaLR(Optimizer& optimizer, Lambda f);
  /// One a group.
  LambdaLR(Optimizer& optimizer, std::vector<Lambda> f);

 private:
  std::vector<double> get_lrs() override;
  std::vector<Lambda> f_;
};

/// The last rate times f(epoch).
class BRASA_API MultiplicativeLR : public LRScheduler {
 public:
  MultiplicativeLR(Optimizer& optimizer, Lambda f);
  MultiplicativeLR(Optimizer& optimizer, std::vector<Lambda> f);

 private:
  std::vector<double> get_lrs() override;
  std::vector<Lambda> f_;
};

/// Times gamma every step_size epochs.
class BRASA_API StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1);

 private:
  double factor() const override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  int64_t step_size_;
  double gamma_;
};

/// Times gamma at each of the epochs `milestones`.
class BRASA_API MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1);

 private:
  double factor() const override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  std::vector<int64_t> milestones_;
  double gamma_;
};

/// The initial rate times `factor` for total_iters epochs, then as it is.
class BRASA_API ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5);

 private:
  double factor() const override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  double factor_;
  int64_t total_iters_;
};

/// A factor that goes in a line from start_factor to end_factor in total_iters epochs.
class BRASA_API LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
                    int64_t total_iters = 5);

 private:
  double factor() const override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  double start_, end_;
  int64_t total_iters_;
};

/// Times gamma every epoch.
class BRASA_API ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma);

 private:
  double factor() const override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  double gamma_;
};

/// The initial rate times (1 - epoch / total_iters)^power, to 0.
class BRASA_API PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1.0);

 private:
  double factor() const override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  int64_t total_iters_;
  double power_;
};

/// Half a cosine from the initial rate to eta_min in T_max epochs, and back (Loshchilov & Hutter 2017, without restarts).
class BRASA_API CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min = 0);

 private:
  std::vector<double> get_lrs() override;
  std::optional<std::vector<double>> closed_form(int64_t epoch) const override;
  int64_t T_max_;
  double eta_min_;
};

/// Half a cosine from the initial rate to eta_min in T_0 epochs, then again in T_0 · T_mult, … (ibid.). `step(epoch)` takes parts of
/// epochs.
class BRASA_API CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult = 1, double eta_min = 0);
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  void advance(std::optional<double> epoch) override;
  std::vector<double> get_lrs() override;
  int64_t T_0_, T_mult_;
  double eta_min_;
  double T_cur_ = -1, T_i_;
};

struct CyclicLROptions {
  CyclicLROptions(double base_lr, double max_lr) : base_lr_{base_lr}, max_lr_{max_lr} {}
  CyclicLROptions(std::vector<double> base_lr, std::vector<double> max_lr)
      : base_lr_(std::move(base_lr)), max_lr_(std::move(max_lr)) {}
  /// One for all groups, or one a group; the momenta too.
  BRASA_ARG(std::vector<double>, base_lr);
  BRASA_ARG(std::vector<double>, max_lr);
  BRASA_ARG(int64_t, step_size_up) = 2000;
  /// As long as up by default.
  BRASA_ARG(std::optional<int64_t>, step_size_down) = std::nullopt;
  /// "triangular", "triangular2" (half as high each cycle) or "exp_range" (times gamma^epoch).
  BRASA_ARG(std::string, mode) = "triangular";
  BRASA_ARG(double, gamma) = 1.0;
  /// Instead of a mode: the height by the cycle, or by the epoch where scale_mode is "iterations".
  BRASA_ARG(std::function<double(double)>, scale_fn) = nullptr;
  BRASA_ARG(std::string, scale_mode) = "cycle";
  BRASA_ARG(bool, cycle_momentum) = true;
  BRASA_ARG(std::vector<double>, base_momentum) = { 0.8 };
  BRASA_ARG(std::vector<double>, max_momentum) = { 0.9 };
};

/// Up and down in lines between two rates, and the momentum the other way (Smith 2017).
class BRASA_API CyclicLR : public LRScheduler {
 public:
  CyclicLR(Optimizer& optimizer, CyclicLROptions options);

 private:
  std::vector<double> get_lrs() override;
  CyclicLROptions o_;
  double total_, ratio_;
};

struct BRASA_API OneCycleLROptions {
  OneCycleLROptions(double max_lr, int64_t total_steps) : max_lr_{max_lr}, total_steps_(total_steps) {}
  OneCycleLROptions(std::vector<double> max_lr, int64_t total_steps)
      : max_lr_(std::move(max_lr)), total_steps_(total_steps) {}
  /// total_steps = epochs · steps_per_epoch. brasa::Error unless both are positive.
  OneCycleLROptions(double max_lr, int64_t epochs, int64_t steps_per_epoch);
  OneCycleLROptions(std::vector<double> max_lr, int64_t epochs, int64_t steps_per_epoch);
  /// One for all groups, or one a group; the momenta too.
  BRASA_ARG(std::vector<double>, max_lr);
  BRASA_ARG(int64_t, total_steps);
  BRASA_ARG(double, pct_start) = 0.3;
  /// "cos" or "linear".
  BRASA_ARG(std::string, anneal_strategy) = "cos";
  BRASA_ARG(bool, cycle_momentum) = true;
  BRASA_ARG(std::vector<double>, base_momentum) = { 0.85 };
  BRASA_ARG(std::vector<double>, max_momentum) = { 0.95 };
  BRASA_ARG(double, div_factor) = 25;
  BRASA_ARG(double, final_div_factor) = 1e4;
  BRASA_ARG(bool, three_phase) = false;
};

/// From max_lr / div_factor up to max_lr and down to max_lr / div_factor / final_div_factor, and the momentum the other way (Smith &
/// Topin 2019). brasa::Error for more than total_steps steps.
class BRASA_API OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(Optimizer& optimizer, OneCycleLROptions options);

 private:
  std::vector<double> get_lrs() override;
  OneCycleLROptions o_;
};

/// From the present rate to swa_lr in anneal_epochs epochs, for averaging weights (Izmailov et al. 2018).
class BRASA_API SWALR : public LRScheduler {
 public:
  /// anneal_strategy: "cos" or "linear".
  SWALR(Optimizer& optimizer, double swa_lr, int64_t anneal_epochs = 10, std::string anneal_strategy = "cos");
  /// One rate a group.
  SWALR(Optimizer& optimizer, std::vector<double> swa_lr, int64_t anneal_epochs = 10,
        std::string anneal_strategy = "cos");

 private:
  std::vector<double> get_lrs() override;
  std::vector<double> swa_lr_;
  int64_t anneal_epochs_;
  bool cosine_;
};

using Schedulers = std::vector<std::shared_ptr<LRScheduler>>;

/// One schedule after the other: the k-th begins anew at the epoch milestones[k - 1].
class BRASA_API SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, Schedulers schedulers, std::vector<int64_t> milestones);
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  void advance(std::optional<double> epoch) override;
  void undo() override;
  Schedulers schedulers_;
  std::vector<int64_t> milestones_;
};

/// All of them at every step, each from the rate that the one before it set.
class BRASA_API ChainedScheduler : public LRScheduler {
 public:
  ChainedScheduler(Optimizer& optimizer, Schedulers schedulers);
  void save(serialize::OutputArchive& archive) const override;
  void load(serialize::InputArchive& archive) override;

 private:
  void advance(std::optional<double> epoch) override;
  void undo() override;
  Schedulers schedulers_;
};

/// By a metric; Python's and LibTorch's are the same.
using ReduceLROnPlateau = ReduceLROnPlateauScheduler;

}  // namespace brasa::optim::lr_scheduler
