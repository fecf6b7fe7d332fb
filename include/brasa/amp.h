#pragma once

#include <unordered_set>

#include <brasa/autocast.h>
#include <brasa/optim/optimizer.h>

namespace brasa::amp {

using autocast = AutocastMode;

struct GradScalerOptions {
  GradScalerOptions(double init_scale = 65536.0) : init_scale_(init_scale) {}  // NOLINT
  BRASA_ARG(double, init_scale);
  BRASA_ARG(double, growth_factor) = 2.0;
  BRASA_ARG(double, backoff_factor) = 0.5;
  BRASA_ARG(int64_t, growth_interval) = 2000;
  /// False: every call does what it would without a scaler.
  BRASA_ARG(bool, enabled) = true;
};

/// Keeps small gradients of float16 from becoming zero: the loss is multiplied by a scale, the gradients divided by it, and a step
/// whose gradients are not all finite is left out and the scale made smaller (Micikevicius et al. 2018). Python's
/// torch.amp.GradScaler:
///
///     optimizer.zero_grad();
///     { amp::autocast guard(kFloat16); loss = criterion(model->forward(x), y); }
///     scaler.scale(loss).backward();
///     scaler.unscale_(optimizer);  // only where gradients are looked at, as in clipping
///     scaler.step(optimizer);
///     scaler.update();
class BRASA_API GradScaler {
 public:
  /// brasa::Error for a growth factor of 1 or less, or a backoff factor of 1 or more.
  explicit GradScaler(GradScalerOptions options = {});
  ~GradScaler();
  GradScaler(GradScaler&&) noexcept;
  GradScaler& operator=(GradScaler&&) noexcept;

  Tensor scale(const Tensor& outputs) const;
  std::vector<Tensor> scale(const std::vector<Tensor>& outputs) const;
  /// Divides the gradients of the optimizer's parameters by the scale. brasa::Error the second time between two updates, after
  /// `step`, and for float16 gradients.
  void unscale_(optim::Optimizer& optimizer);
  /// The optimizer's step, unless a gradient is infinite or NaN; divides them by the scale first if that was not done. Whether
  /// it was taken. On a GPU, and while a compiled function is recorded, nobody waits to know that: the step is computed, its results are
  /// kept or dropped by the device, and the answer is true (not the first time, when the optimizer makes its state, and not with
  /// optimizers that count in numbers). brasa::Error the second time between two updates.
  bool step(optim::Optimizer& optimizer);
  /// After the steps of one iteration: the scale · backoff_factor if one was left out, · growth_factor if none was for
  /// growth_interval iterations; or a new one.
  void update(std::optional<double> new_scale = std::nullopt);

  double get_scale() const;
  bool is_enabled() const { return options_.enabled(); }
  double get_growth_factor() const { return options_.growth_factor(); }
  void set_growth_factor(double factor) { options_.growth_factor(factor); }
  double get_backoff_factor() const { return options_.backoff_factor(); }
  void set_backoff_factor(double factor) { options_.backoff_factor(factor); }
  int64_t get_growth_interval() const { return options_.growth_interval(); }
  void set_growth_interval(int64_t interval) { options_.growth_interval(interval); }
  /// Iterations since the scale last changed.
  int64_t get_growth_tracker() const;

  void save(serialize::OutputArchive& archive) const;
  void load(serialize::InputArchive& archive);

 private:
  // Of an optimizer since the last update.
  struct Stage {
    Tensor found_inf;  // float32 of no dimension: 0 or 1
    bool stepped = false;
  };
  void set_scale(double scale);
  void live_on(Device device) const;

  GradScalerOptions options_;
  // Tensors of no dimension, float32 and int64, so that a compiled step reads and writes them; where the first outputs live.
  mutable Tensor scale_, growth_tracker_;
  mutable bool placed_ = false;
  std::unordered_map<optim::Optimizer*, Stage> stages_;
  std::unordered_set<const optim::Optimizer*> begun_;  // those that made a step
};

}  // namespace brasa::amp
