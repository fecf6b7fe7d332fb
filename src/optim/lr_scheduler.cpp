#include <brasa/optim/lr_scheduler.h>

#include <algorithm>
#include <cmath>

#include "optim/numbers.h"
#include "support/error.h"

// What all schedules share, and those that are a factor from one epoch to the next.
namespace brasa::optim::lr_scheduler {

LRScheduler::LRScheduler(Optimizer& optimizer) : optim::LRScheduler(optimizer) {
  for (OptimizerParamGroup& group : optimizer.param_groups()) {
    if (!group.initial_lr()) group.initial_lr() = group.options().get_lr();
    base_lrs_.push_back(*group.initial_lr());
  }
}

void LRScheduler::first_step() {
  step_count_ = 0;
  step();
}

void LRScheduler::advance(std::optional<double> epoch) {
  ++step_count_;
  if (!epoch) {
    ++last_epoch_;
    set_lrs(get_lrs());
    return;
  }
  last_epoch_ = static_cast<int64_t>(*epoch);
  std::optional<std::vector<double>> lrs = closed_form(last_epoch_);
  set_lrs(lrs ? *lrs : get_lrs());
}

void LRScheduler::set_lrs(const std::vector<double>& lrs) {
  set_optimizer_lrs(lrs);
  last_lr_ = lrs;
}

std::vector<double> LRScheduler::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  double f = factor();
  for (double& lr : lrs) lr *= f;
  return lrs;
}
double LRScheduler::factor() const { return 1; }
std::optional<std::vector<double>> LRScheduler::closed_form(int64_t) const { return std::nullopt; }

std::vector<double> LRScheduler::scaled(double f) const {
  std::vector<double> lrs = base_lrs_;
  for (double& lr : lrs) lr *= f;
  return lrs;
}

void LRScheduler::set_momenta(const std::vector<double>& momenta) {
  auto& groups = optimizer().param_groups();
  for (size_t i = 0; i < groups.size(); ++i) groups[i].options().set_momentum(momenta[i]);
}

void LRScheduler::save(serialize::OutputArchive& archive) const {
  write_number(archive, "last_epoch", static_cast<double>(last_epoch_));
  write_number(archive, "_step_count", step_count_);
  for (size_t i = 0; i < base_lrs_.size(); ++i) {
    write_number(archive, "base_lrs." + std::to_string(i), base_lrs_[i]);
    write_number(archive, "_last_lr." + std::to_string(i), last_lr_.at(i));
  }
}
void LRScheduler::load(serialize::InputArchive& archive) {
  last_epoch_ = static_cast<int64_t>(read_number(archive, "last_epoch"));
  step_count_ = static_cast<unsigned>(read_number(archive, "_step_count"));
  last_lr_.resize(base_lrs_.size());
  for (size_t i = 0; i < base_lrs_.size(); ++i) {
    base_lrs_[i] = read_number(archive, "base_lrs." + std::to_string(i));
    last_lr_[i] = read_number(archive, "_last_lr." + std::to_string(i));
  }
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  BRASA_CHECK(step_size > 0, "StepLR: the step size must be positive, got ", step_size);
  first_step();
}
double StepLR::factor() const { return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? 1 : gamma_; }
std::optional<std::vector<double>> StepLR::closed_form(int64_t epoch) const {
  return scaled(std::pow(gamma_, static_cast<double>(epoch / step_size_)));
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  first_step();
}
double MultiStepLR::factor() const {
  auto [begin, end] = std::equal_range(milestones_.begin(), milestones_.end(), last_epoch_);
  return begin == end ? 1 : std::pow(gamma_, static_cast<double>(end - begin));
}
std::optional<std::vector<double>> MultiStepLR::closed_form(int64_t epoch) const {
  auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), epoch) - milestones_.begin();
  return scaled(std::pow(gamma_, static_cast<double>(passed)));
}

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  BRASA_CHECK(0 < factor && factor <= 1, "ConstantLR: the factor is expected to be in (0, 1], got ", factor);
  first_step();
}
double ConstantLR::factor() const {
  if (last_epoch_ == 0) return factor_;
  return last_epoch_ == total_iters_ ? 1 / factor_ : 1;
}
std::optional<std::vector<double>> ConstantLR::closed_form(int64_t epoch) const {
  return scaled(epoch >= total_iters_ ? 1 : factor_);
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters)
    : LRScheduler(optimizer), start_(start_factor), end_(end_factor), total_iters_(total_iters) {
  BRASA_CHECK(0 < start_factor && start_factor <= 1, "LinearLR: the start factor is expected to be in (0, 1], got ",
              start_factor);
  BRASA_CHECK(0 <= end_factor && end_factor <= 1, "LinearLR: the end factor is expected to be in [0, 1], got ",
              end_factor);
  first_step();
}
double LinearLR::factor() const {
  if (last_epoch_ == 0) return start_;
  if (last_epoch_ > total_iters_) return 1;
  double change = end_ - start_;
  return 1 + change / (static_cast<double>(total_iters_) * start_ + static_cast<double>(last_epoch_ - 1) * change);
}
std::optional<std::vector<double>> LinearLR::closed_form(int64_t epoch) const {
  double part = static_cast<double>(std::min(total_iters_, epoch)) / static_cast<double>(total_iters_);
  return scaled(start_ + (end_ - start_) * part);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma) : LRScheduler(optimizer), gamma_(gamma) {
  first_step();
}
double ExponentialLR::factor() const { return last_epoch_ == 0 ? 1 : gamma_; }
std::optional<std::vector<double>> ExponentialLR::closed_form(int64_t epoch) const {
  return scaled(std::pow(gamma_, static_cast<double>(epoch)));
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  first_step();
}
double PolynomialLR::factor() const {
  if (last_epoch_ == 0 || last_epoch_ > total_iters_) return 1;
  auto left = [&](int64_t epoch) { return 1 - static_cast<double>(epoch) / static_cast<double>(total_iters_); };
  return std::pow(left(last_epoch_) / left(last_epoch_ - 1), power_);
}
std::optional<std::vector<double>> PolynomialLR::closed_form(int64_t epoch) const {
  double part = static_cast<double>(std::min(total_iters_, epoch)) / static_cast<double>(total_iters_);
  return scaled(std::pow(1 - part, power_));
}

}  // namespace brasa::optim::lr_scheduler
