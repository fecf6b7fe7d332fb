#include <brasa/optim/reduce_on_plateau.h>

#include <algorithm>
#include <limits>

#include "optim/numbers.h"
#include "support/error.h"
#include "support/log.h"

namespace brasa::optim {

ReduceLROnPlateauScheduler::ReduceLROnPlateauScheduler(Optimizer& optimizer, SchedulerMode mode, double factor,
                                                       int64_t patience, double threshold, ThresholdMode threshold_mode,
                                                       int64_t cooldown, std::vector<double> min_lrs, double eps,
                                                       bool verbose)
    : optimizer_(optimizer),
      mode_(mode),
      factor_(factor),
      patience_(patience),
      threshold_(threshold),
      threshold_mode_(threshold_mode),
      cooldown_(cooldown),
      min_lrs_(std::move(min_lrs)),
      eps_(eps),
      verbose_(verbose) {
  BRASA_CHECK(factor < 1, "ReduceLROnPlateau: the factor should be < 1.0, got ", factor);
  size_t groups = optimizer.param_groups().size();
  if (min_lrs_.size() < 2) min_lrs_.assign(groups, min_lrs_.empty() ? 0.0 : min_lrs_[0]);
  BRASA_CHECK(min_lrs_.size() == groups, "ReduceLROnPlateau: number of learning rates ", groups,
              " and of minimum learning rates ", min_lrs_.size(), " differ");
  reset();
}
ReduceLROnPlateauScheduler::~ReduceLROnPlateauScheduler() = default;

void ReduceLROnPlateauScheduler::reset() {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  best_ = mode_ == min ? infinity : -infinity;
  bad_steps_ = cooldown_left_ = 0;
}

bool ReduceLROnPlateauScheduler::is_better(double metric) const {
  double change = threshold_mode_ == rel ? best_ * threshold_ : threshold_;
  // An infinite best metric has no part that could be taken off it.
  if (best_ == std::numeric_limits<double>::infinity() || best_ == -std::numeric_limits<double>::infinity()) change = 0;
  return mode_ == min ? metric < best_ - change : metric > best_ + change;
}

void ReduceLROnPlateauScheduler::step(double metric) {
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    bad_steps_ = 0;
  } else {
    ++bad_steps_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_steps_ = 0;
  }
  if (bad_steps_ > patience_) {
    reduce();
    cooldown_left_ = cooldown_;
    bad_steps_ = 0;
  }
}

void ReduceLROnPlateauScheduler::reduce() {
  auto& groups = optimizer_.param_groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    double old = groups[i].options().get_lr(), lr = std::max(old * factor_, min_lrs_[i]);
    if (old - lr <= eps_) continue;
    groups[i].options().set_lr(lr);
    if (verbose_) log_line("optim", str("step ", last_epoch_, ": reducing learning rate of group ", i, " to ", lr));
  }
}

void ReduceLROnPlateauScheduler::save(serialize::OutputArchive& archive) const {
  write_number(archive, "best", best_);
  write_number(archive, "num_bad_epochs", static_cast<double>(bad_steps_));
  write_number(archive, "cooldown_counter", static_cast<double>(cooldown_left_));
  write_number(archive, "last_epoch", static_cast<double>(last_epoch_));
}
void ReduceLROnPlateauScheduler::load(serialize::InputArchive& archive) {
  best_ = read_number(archive, "best");
  bad_steps_ = static_cast<int64_t>(read_number(archive, "num_bad_epochs"));
  cooldown_left_ = static_cast<int64_t>(read_number(archive, "cooldown_counter"));
  last_epoch_ = static_cast<int64_t>(read_number(archive, "last_epoch"));
}

}  // namespace brasa::optim
