#include <brasa/optim/lr_scheduler.h>

#include <cmath>
#include <numbers>

#include "optim/numbers.h"
#include "support/error.h"

// Schedules that are curves of the epoch: functions of the user's, cosines, cycles.
namespace brasa::optim::lr_scheduler {
namespace {

constexpr double kPi = std::numbers::pi;

double number(int64_t n) { return static_cast<double>(n); }

// One for all groups, or one a group.
template <class T>
std::vector<T> each_group(const Optimizer& optimizer, std::vector<T> values, const char* what) {
  size_t groups = optimizer.param_groups().size();
  if (values.size() == 1) values.resize(groups, values[0]);
  BRASA_CHECK(values.size() == groups, what, ": expected one value or ", groups, " for as many parameter groups, got ",
              values.size());
  return values;
}

bool is_cosine(const std::string& strategy, const char* schedule) {
  BRASA_CHECK(strategy == "cos" || strategy == "linear", schedule,
              ": anneal_strategy must be one of 'cos' or 'linear', got '", strategy, "'");
  return strategy == "cos";
}

void check_momentum(const Optimizer& optimizer, const char* schedule) {
  for (const OptimizerParamGroup& group : optimizer.param_groups())
    BRASA_CHECK(group.options().get_momentum(), schedule,
                ": the optimizer must support momentum or beta1 with cycle_momentum");
}

}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, Lambda f) : LambdaLR(optimizer, std::vector<Lambda>{std::move(f)}) {}
LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Lambda> f)
    : LRScheduler(optimizer), f_(each_group(optimizer, std::move(f), "LambdaLR")) {
  first_step();
}
std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> lrs = base_lrs_;
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] *= f_[i](last_epoch_);
  return lrs;
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, Lambda f)
    : MultiplicativeLR(optimizer, std::vector<Lambda>{std::move(f)}) {}
MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Lambda> f)
    : LRScheduler(optimizer), f_(each_group(optimizer, std::move(f), "MultiplicativeLR")) {
  first_step();
}
std::vector<double> MultiplicativeLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (last_epoch_ > 0)
    for (size_t i = 0; i < lrs.size(); ++i) lrs[i] *= f_[i](last_epoch_);
  return lrs;
}

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t T_max, double eta_min)
    : LRScheduler(optimizer), T_max_(T_max), eta_min_(eta_min) {
  BRASA_CHECK(T_max > 0, "CosineAnnealingLR: T_max must be positive, got ", T_max);
  first_step();
}
// From the last rate, so that what other schedules did to it stays.
std::vector<double> CosineAnnealingLR::get_lrs() {
  std::vector<double> lrs = get_current_lrs();
  if (last_epoch_ == 0) return lrs;
  bool at_minimum = (last_epoch_ - 1 - T_max_) % (2 * T_max_) == 0;
  auto height = [&](int64_t epoch) { return 1 + std::cos(kPi * number(epoch) / number(T_max_)); };
  for (size_t i = 0; i < lrs.size(); ++i) {
    if (at_minimum)
      lrs[i] += (base_lrs_[i] - eta_min_) * (1 - std::cos(kPi / number(T_max_))) / 2;
    else
      lrs[i] = height(last_epoch_) / height(last_epoch_ - 1) * (lrs[i] - eta_min_) + eta_min_;
  }
  return lrs;
}
std::optional<std::vector<double>> CosineAnnealingLR::closed_form(int64_t epoch) const {
  std::vector<double> lrs = base_lrs_;
  for (double& lr : lrs) lr = eta_min_ + (lr - eta_min_) * (1 + std::cos(kPi * number(epoch) / number(T_max_))) / 2;
  return lrs;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t T_0, int64_t T_mult,
                                                         double eta_min)
    : LRScheduler(optimizer), T_0_(T_0), T_mult_(T_mult), eta_min_(eta_min), T_i_(number(T_0)) {
  BRASA_CHECK(T_0 > 0, "CosineAnnealingWarmRestarts: T_0 must be positive, got ", T_0);
  BRASA_CHECK(T_mult >= 1, "CosineAnnealingWarmRestarts: T_mult must be at least 1, got ", T_mult);
  first_step();
}
std::vector<double> CosineAnnealingWarmRestarts::get_lrs() {
  std::vector<double> lrs = base_lrs_;
  for (double& lr : lrs) lr = eta_min_ + (lr - eta_min_) * (1 + std::cos(kPi * T_cur_ / T_i_)) / 2;
  return lrs;
}
void CosineAnnealingWarmRestarts::advance(std::optional<double> epoch) {
  ++step_count_;
  if (!epoch) {
    epoch = number(last_epoch_ + 1);
    ++T_cur_;
    if (last_epoch_ < 0) T_cur_ = 0;
    if (T_cur_ >= T_i_) {
      T_cur_ -= T_i_;
      T_i_ *= number(T_mult_);
    }
  } else {
    BRASA_CHECK(*epoch >= 0, "CosineAnnealingWarmRestarts: expected a non-negative epoch, got ", *epoch);
    double first = number(T_0_), mult = number(T_mult_);
    T_i_ = first;
    T_cur_ = *epoch;
    if (T_mult_ == 1) {
      T_cur_ = std::fmod(*epoch, first);
    } else {
      while (T_cur_ >= T_i_) {
        T_cur_ -= T_i_;
        T_i_ *= mult;
      }
    }
  }
  last_epoch_ = static_cast<int64_t>(std::floor(*epoch));
  set_lrs(get_lrs());
}
void CosineAnnealingWarmRestarts::save(serialize::OutputArchive& archive) const {
  LRScheduler::save(archive);
  write_number(archive, "T_cur", T_cur_);
  write_number(archive, "T_i", T_i_);
}
void CosineAnnealingWarmRestarts::load(serialize::InputArchive& archive) {
  LRScheduler::load(archive);
  T_cur_ = read_number(archive, "T_cur");
  T_i_ = read_number(archive, "T_i");
}

namespace {

// The lowest rates are the initial ones.
Optimizer& starting_at(Optimizer& optimizer, const std::vector<double>& lrs) {
  auto& groups = optimizer.param_groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    groups[i].options().set_lr(lrs[i]);
    groups[i].initial_lr() = lrs[i];
  }
  return optimizer;
}

CyclicLROptions completed(const Optimizer& optimizer, CyclicLROptions o) {
  BRASA_CHECK(o.step_size_up() > 0 && o.step_size_down().value_or(1) > 0, "CyclicLR: step sizes must be positive");
  o.base_lr(each_group(optimizer, o.base_lr(), "CyclicLR: base_lr"));
  o.max_lr(each_group(optimizer, o.max_lr(), "CyclicLR: max_lr"));
  if (o.cycle_momentum()) {
    check_momentum(optimizer, "CyclicLR");
    o.base_momentum(each_group(optimizer, o.base_momentum(), "CyclicLR: base_momentum"));
    o.max_momentum(each_group(optimizer, o.max_momentum(), "CyclicLR: max_momentum"));
  }
  if (o.scale_fn()) {
    BRASA_CHECK(o.scale_mode() == "cycle" || o.scale_mode() == "iterations",
                "CyclicLR: scale_mode must be 'cycle' or 'iterations', got '", o.scale_mode(), "'");
    return o;
  }
  o.scale_mode("cycle");
  if (o.mode() == "triangular") {
    o.scale_fn([](double) { return 1.0; });
  } else if (o.mode() == "triangular2") {
    o.scale_fn([](double cycle) { return std::pow(2, 1 - cycle); });
  } else {
    BRASA_CHECK(o.mode() == "exp_range", "CyclicLR: mode must be 'triangular', 'triangular2' or 'exp_range', got '",
                o.mode(), "'");
    o.scale_mode("iterations").scale_fn([gamma = o.gamma()](double epoch) { return std::pow(gamma, epoch); });
  }
  return o;
}

}  // namespace

CyclicLR::CyclicLR(Optimizer& optimizer, CyclicLROptions options)
    : LRScheduler(starting_at(optimizer, (options = completed(optimizer, std::move(options))).base_lr())),
      o_(std::move(options)) {
  double up = number(o_.step_size_up());
  total_ = up + number(o_.step_size_down().value_or(o_.step_size_up()));
  ratio_ = up / total_;
  first_step();
}
std::vector<double> CyclicLR::get_lrs() {
  double at = number(last_epoch_), cycle = std::floor(1 + at / total_), x = 1 + at / total_ - cycle;
  double height = x <= ratio_ ? x / ratio_ : (x - 1) / (ratio_ - 1);
  height *= o_.scale_fn()(o_.scale_mode() == "cycle" ? cycle : at);
  std::vector<double> lrs = o_.base_lr();
  for (size_t i = 0; i < lrs.size(); ++i) lrs[i] += (o_.max_lr()[i] - lrs[i]) * height;
  if (o_.cycle_momentum()) {
    std::vector<double> momenta = o_.max_momentum();
    for (size_t i = 0; i < momenta.size(); ++i) momenta[i] -= (momenta[i] - o_.base_momentum()[i]) * height;
    set_momenta(momenta);
  }
  return lrs;
}

namespace {

int64_t steps_in_all(int64_t epochs, int64_t steps_per_epoch) {
  BRASA_CHECK(epochs > 0, "OneCycleLR: expected positive epochs, got ", epochs);
  BRASA_CHECK(steps_per_epoch > 0, "OneCycleLR: expected positive steps_per_epoch, got ", steps_per_epoch);
  int64_t total = 0;
  BRASA_CHECK(!__builtin_mul_overflow(epochs, steps_per_epoch, &total), "OneCycleLR: ", epochs, " epochs of ",
              steps_per_epoch, " steps are more than a count of 64 bits holds");
  return total;
}

OneCycleLROptions completed(const Optimizer& optimizer, OneCycleLROptions o) {
  BRASA_CHECK(o.total_steps() > 0, "OneCycleLR: expected positive total_steps, got ", o.total_steps());
  BRASA_CHECK(0 <= o.pct_start() && o.pct_start() <= 1, "OneCycleLR: expected pct_start between 0 and 1, got ",
              o.pct_start());
  is_cosine(o.anneal_strategy(), "OneCycleLR");
  o.max_lr(each_group(optimizer, o.max_lr(), "OneCycleLR: max_lr"));
  if (o.cycle_momentum()) {
    check_momentum(optimizer, "OneCycleLR");
    o.base_momentum(each_group(optimizer, o.base_momentum(), "OneCycleLR: base_momentum"));
    o.max_momentum(each_group(optimizer, o.max_momentum(), "OneCycleLR: max_momentum"));
  }
  return o;
}

std::vector<double> first_lrs(const OneCycleLROptions& o) {
  std::vector<double> lrs = o.max_lr();
  for (double& lr : lrs) lr /= o.div_factor();
  return lrs;
}

double between(double from, double to, double part, bool cosine) {
  return cosine ? to + (from - to) / 2 * (1 + std::cos(kPi * part)) : from + (to - from) * part;
}

}  // namespace

OneCycleLROptions::OneCycleLROptions(double max_lr, int64_t epochs, int64_t steps_per_epoch)
    : OneCycleLROptions(std::vector<double>{max_lr}, epochs, steps_per_epoch) {}
OneCycleLROptions::OneCycleLROptions(std::vector<double> max_lr, int64_t epochs, int64_t steps_per_epoch)
    : OneCycleLROptions(std::move(max_lr), steps_in_all(epochs, steps_per_epoch)) {}

OneCycleLR::OneCycleLR(Optimizer& optimizer, OneCycleLROptions options)
    : LRScheduler(starting_at(optimizer, first_lrs(options = completed(optimizer, std::move(options))))),
      o_(std::move(options)) {
  first_step();
}
std::vector<double> OneCycleLR::get_lrs() {
  BRASA_CHECK(last_epoch_ <= o_.total_steps(), "OneCycleLR: step ", last_epoch_ + 1, " of a schedule of ",
              o_.total_steps());
  // Where each phase ends, and the rates and momenta there.
  enum Rate { First, Most, Last };
  struct Phase {
    double end;
    Rate from, to;
    bool momentum_down, momentum_up;
  };
  double total = number(o_.total_steps()), rise = o_.pct_start() * total;
  std::vector<Phase> phases = {{rise - 1, First, Most, true, false}};
  if (o_.three_phase()) {
    phases.push_back({2 * rise - 2, Most, First, false, true});
    phases.push_back({total - 1, First, Last, false, false});
  } else {
    phases.push_back({total - 1, Most, Last, false, true});
  }
  double at = number(last_epoch_), start = 0;
  size_t k = 0;
  for (; k + 1 < phases.size() && at > phases[k].end; ++k) start = phases[k].end;
  const Phase& phase = phases[k];
  double part = (at - start) / (phase.end - start);
  bool cosine = o_.anneal_strategy() == "cos";
  std::vector<double> lrs, momenta;
  for (size_t i = 0; i < base_lrs_.size(); ++i) {
    double first = o_.max_lr()[i] / o_.div_factor();
    double rates[] = {first, o_.max_lr()[i], first / o_.final_div_factor()};
    lrs.push_back(between(rates[phase.from], rates[phase.to], part, cosine));
    if (!o_.cycle_momentum()) continue;
    double low = o_.base_momentum()[i], high = o_.max_momentum()[i];
    momenta.push_back(phase.momentum_down ? between(high, low, part, cosine)
                      : phase.momentum_up ? between(low, high, part, cosine)
                                          : high);
  }
  if (o_.cycle_momentum()) set_momenta(momenta);
  return lrs;
}

SWALR::SWALR(Optimizer& optimizer, double swa_lr, int64_t anneal_epochs, std::string anneal_strategy)
    : SWALR(optimizer, std::vector<double>{swa_lr}, anneal_epochs, std::move(anneal_strategy)) {}
SWALR::SWALR(Optimizer& optimizer, std::vector<double> swa_lr, int64_t anneal_epochs, std::string anneal_strategy)
    : LRScheduler(optimizer),
      swa_lr_(each_group(optimizer, std::move(swa_lr), "SWALR: swa_lr")),
      anneal_epochs_(anneal_epochs),
      cosine_(is_cosine(anneal_strategy, "SWALR")) {
  BRASA_CHECK(anneal_epochs >= 0, "SWALR: anneal_epochs must be 0 or more, got ", anneal_epochs);
  first_step();
}
// The rate at the start follows from the last one, so that it may be another schedule's.
std::vector<double> SWALR::get_lrs() {
  int64_t step = static_cast<int64_t>(step_count_) - 1;
  if (anneal_epochs_ == 0) step = std::max<int64_t>(1, step);
  auto alpha = [&](int64_t n) {
    double t = std::clamp(number(n) / number(std::max<int64_t>(1, anneal_epochs_)), 0.0, 1.0);
    return cosine_ ? (1 - std::cos(kPi * t)) / 2 : t;
  };
  double before = alpha(step - 1), now = alpha(step);
  std::vector<double> lrs = get_current_lrs();
  for (size_t i = 0; i < lrs.size(); ++i) {
    double start = before == 1 ? swa_lr_[i] : (lrs[i] - before * swa_lr_[i]) / (1 - before);
    lrs[i] = swa_lr_[i] * now + start * (1 - now);
  }
  return lrs;
}

}  // namespace brasa::optim::lr_scheduler
