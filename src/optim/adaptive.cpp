#include <brasa/optim/adaptive.h>

#include <algorithm>
#include <cmath>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {
namespace {

void make(Tensor& state, const Tensor& p, double value = 0) {
  if (!state.defined()) state = state_full_like(p, value);
}

}  // namespace

std::unique_ptr<OptimizerOptions> AdagradOptions::fresh() const { return std::make_unique<AdagradOptions>(); }
std::unique_ptr<OptimizerOptions> RMSpropOptions::fresh() const { return std::make_unique<RMSpropOptions>(); }

BRASA_FIELDS(AdagradOptions, BRASA_F(lr) BRASA_F(lr_decay) BRASA_F(weight_decay) BRASA_F(initial_accumulator_value)
                                 BRASA_F(eps) BRASA_F(maximize))
BRASA_FIELDS(AdagradParamState, BRASA_F(sum) BRASA_F(step))
BRASA_FIELDS(RMSpropOptions, BRASA_F(lr) BRASA_F(alpha) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(momentum)
                                 BRASA_F(centered) BRASA_F(maximize))
BRASA_FIELDS(RMSpropParamState, BRASA_F(step) BRASA_F(square_avg) BRASA_F(momentum_buffer) BRASA_F(grad_avg))
BRASA_FIELDS(AdadeltaOptions, BRASA_F(lr) BRASA_F(rho) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(AdadeltaParamState, BRASA_F(step) BRASA_F(square_avg) BRASA_F(acc_delta))
BRASA_FIELDS(AdamaxOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(AdamaxParamState, BRASA_F(step) BRASA_F(exp_avg) BRASA_F(exp_inf))
BRASA_FIELDS(ASGDOptions, BRASA_F(lr) BRASA_F(lambd) BRASA_F(alpha) BRASA_F(t0) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(ASGDParamState, BRASA_F(step) BRASA_F(eta) BRASA_F(mu) BRASA_F(ax))
BRASA_FIELDS(RpropOptions, BRASA_F(lr) BRASA_F(etas) BRASA_F(step_sizes) BRASA_F(maximize))
BRASA_FIELDS(RpropParamState, BRASA_F(step) BRASA_F(prev) BRASA_F(step_size))
BRASA_FIELDS(NAdamOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(momentum_decay)
                               BRASA_F(decoupled_weight_decay) BRASA_F(maximize))
BRASA_FIELDS(NAdamParamState, BRASA_F(step) BRASA_F(mu_product) BRASA_F(exp_avg) BRASA_F(exp_avg_sq))
BRASA_FIELDS(RAdamOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(decoupled_weight_decay)
                               BRASA_F(maximize))
BRASA_FIELDS(RAdamParamState, BRASA_F(step) BRASA_F(exp_avg) BRASA_F(exp_avg_sq))

void AdagradOptions::check() const {
  check_common(*this);
  BRASA_CHECK(lr_decay() >= 0, "Invalid lr_decay value: ", lr_decay());
  BRASA_CHECK(initial_accumulator_value() >= 0,
              "Invalid initial_accumulator_value value: ", initial_accumulator_value());
}
void AdagradParamState::begin(const Tensor& p, const AdagradOptions& o) {
  sum(state_full_like(p, o.initial_accumulator_value()));
}
void Adagrad::update(Tensor& p, Tensor g, AdagradParamState& s, const AdagradOptions& o) {
  make(s.sum(), p, o.initial_accumulator_value());
  s.step(s.step() + 1);
  double lr = o.lr() / (1 + static_cast<double>(s.step() - 1) * o.lr_decay());
  if (g.is_sparse()) {
    BRASA_CHECK(o.weight_decay() == 0, "Adagrad: weight_decay is not compatible with sparse gradients");
    g = g.coalesce();
    s.sum().add_(g.square());
    Tensor scale = s.sum().sparse_mask(g)._values().sqrt().add_(o.eps());
    p.add_(_sparse_coo_tensor_unsafe(g._indices(), g._values() / scale, g.sizes(), {}, true), -lr);
    return;
  }
  g = decayed(p, g, o);
  s.sum().addcmul_(g, g, 1.0);
  p.addcdiv_(g, s.sum().sqrt().add_(o.eps()), -lr);
}

void RMSpropOptions::check() const {
  check_common(*this);
  BRASA_CHECK(momentum() >= 0, "Invalid momentum value: ", momentum());
  BRASA_CHECK(alpha() >= 0, "Invalid alpha value: ", alpha());
}
void RMSprop::update(Tensor& p, Tensor g, RMSpropParamState& s, const RMSpropOptions& o) {
  make(s.square_avg(), p);
  s.step(s.step() + 1);
  g = decayed(p, g, o);
  s.square_avg().mul_(o.alpha()).addcmul_(g, g, 1 - o.alpha());
  Tensor avg = s.square_avg();
  if (o.centered()) {
    make(s.grad_avg(), p);
    s.grad_avg().mul_(o.alpha()).add_(g, 1 - o.alpha());
    avg = avg.addcmul(s.grad_avg(), s.grad_avg(), -1);
  }
  avg = avg.sqrt().add_(o.eps());
  if (o.momentum() > 0) {
    make(s.momentum_buffer(), p);
    s.momentum_buffer().mul_(o.momentum()).addcdiv_(g, avg);
    p.add_(s.momentum_buffer(), -o.lr());
  } else {
    p.addcdiv_(g, avg, -o.lr());
  }
}

void AdadeltaOptions::check() const {
  check_common(*this);
  BRASA_CHECK(0 <= rho() && rho() <= 1, "Adadelta: Invalid rho value: ", rho());
}
void Adadelta::update(Tensor& p, Tensor g, AdadeltaParamState& s, const AdadeltaOptions& o) {
  make(s.square_avg(), p);
  make(s.acc_delta(), p);
  s.step(s.step() + 1);
  g = decayed(p, g, o);
  s.square_avg().mul_(o.rho()).addcmul_(g, g, 1 - o.rho());
  Tensor delta = s.acc_delta().add(o.eps()).sqrt_().div_(s.square_avg().add(o.eps()).sqrt_()).mul_(g);
  s.acc_delta().mul_(o.rho()).addcmul_(delta, delta, 1 - o.rho());
  p.add_(delta, -o.lr());
}

void AdamaxOptions::check() const { check_common(*this); }
void Adamax::update(Tensor& p, Tensor g, AdamaxParamState& s, const AdamaxOptions& o) {
  make(s.exp_avg(), p);
  make(s.exp_inf(), p);
  s.step(s.step() + 1);
  auto [beta1, beta2] = o.betas();
  g = decayed(p, g, o);
  s.exp_avg().lerp_(g, 1 - beta1);
  s.exp_inf().copy_(maximum(s.exp_inf().mul(beta2), g.abs().add_(o.eps())));
  p.addcdiv_(s.exp_avg(), s.exp_inf(), -o.lr() / (1 - std::pow(beta1, static_cast<double>(s.step()))));
}

void ASGDOptions::check() const { check_common(*this); }
void ASGD::update(Tensor& p, Tensor g, ASGDParamState& s, const ASGDOptions& o) {
  if (!s.ax().defined()) {
    make(s.ax(), p);
    s.eta(o.lr());
  }
  s.step(s.step() + 1);
  g = decayed(p, g, o);
  p.mul_(1 - o.lambd() * s.eta());
  p.add_(g, -s.eta());
  if (s.mu() == 1)
    s.ax().copy_(p);
  else
    s.ax().add_(p.sub(s.ax()).mul_(s.mu()));
  double t = static_cast<double>(s.step());
  s.eta(o.lr() / std::pow(1 + o.lambd() * o.lr() * t, o.alpha()));
  s.mu(1 / std::max(1.0, t - o.t0()));
}

void RpropOptions::check() const {
  check_common(*this);
  BRASA_CHECK(0 < std::get<0>(etas()) && std::get<0>(etas()) < 1 && 1 < std::get<1>(etas()),
              "Rprop: Invalid eta values: ", std::get<0>(etas()), ", ", std::get<1>(etas()));
}
void Rprop::update(Tensor& p, Tensor g, RpropParamState& s, const RpropOptions& o) {
  make(s.prev(), p);
  make(s.step_size(), p, o.lr());
  s.step(s.step() + 1);
  auto [shrink, grow] = o.etas();
  auto [least, most] = o.step_sizes();
  Tensor agreement = g.mul(s.prev());
  Tensor up = agreement > 0, down = agreement < 0;
  Tensor factor = ones_like(g).masked_fill(up, grow).masked_fill(down, shrink);
  s.step_size().mul_(factor).clamp_(least, most);
  g = g.masked_fill(down, 0);
  p.sub_(g.sign().mul_(s.step_size()));
  s.prev().copy_(g);
}

void NAdamOptions::check() const {
  check_common(*this);
  BRASA_CHECK(momentum_decay() >= 0, "NAdam: Invalid momentum_decay value: ", momentum_decay());
}
void NAdam::update(Tensor& p, Tensor g, NAdamParamState& s, const NAdamOptions& o) {
  make(s.exp_avg(), p);
  make(s.exp_avg_sq(), p);
  s.step(s.step() + 1);
  auto [beta1, beta2] = o.betas();
  double t = static_cast<double>(s.step());
  g = decayed(p, g, o, o.decoupled_weight_decay());
  auto momentum = [&, b = beta1](double step) { return b * (1 - 0.5 * std::pow(0.96, step * o.momentum_decay())); };
  double mu = momentum(t), next = momentum(t + 1);
  s.mu_product(s.mu_product() * mu);
  s.exp_avg().lerp_(g, 1 - beta1);
  s.exp_avg_sq().mul_(beta2).addcmul_(g, g, 1 - beta2);
  Tensor denominator = s.exp_avg_sq().div(1 - std::pow(beta2, t)).sqrt_().add_(o.eps());
  p.addcdiv_(g, denominator, -o.lr() * (1 - mu) / (1 - s.mu_product()));
  p.addcdiv_(s.exp_avg(), denominator, -o.lr() * next / (1 - s.mu_product() * next));
}

void RAdamOptions::check() const { check_common(*this); }
void RAdam::update(Tensor& p, Tensor g, RAdamParamState& s, const RAdamOptions& o) {
  make(s.exp_avg(), p);
  make(s.exp_avg_sq(), p);
  s.step(s.step() + 1);
  auto [beta1, beta2] = o.betas();
  double t = static_cast<double>(s.step());
  g = decayed(p, g, o, o.decoupled_weight_decay());
  s.exp_avg().lerp_(g, 1 - beta1);
  s.exp_avg_sq().mul_(beta2).addcmul_(g, g, 1 - beta2);
  double correction1 = 1 - std::pow(beta1, t), correction2 = 1 - std::pow(beta2, t);
  // ρ of the paper: the length of the simple moving average that approximates the exponential one.
  double longest = 2 / (1 - beta2) - 1, length = longest - 2 * t * std::pow(beta2, t) / correction2;
  if (length > 5) {
    double rectification = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
    p.addcdiv_(s.exp_avg(), s.exp_avg_sq().sqrt().add_(o.eps()),
               -o.lr() * rectification * std::sqrt(correction2) / correction1);
  } else {
    p.add_(s.exp_avg(), -o.lr() / correction1);
  }
}

}  // namespace brasa::optim
