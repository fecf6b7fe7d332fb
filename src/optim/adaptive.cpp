#include <brasa/optim/adaptive.h>

#include <cmath>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {
namespace {

// A number of states that are updated together; made with this value at their first update.
template <class State>
Tensor shared(std::vector<Updated<State>>& list, Tensor& (State::*number)(), double value) {
  Tensor common = (list.front().state.*number)();
  if (!common.defined()) {
    common = state_full({}, value, TensorOptions(kFloat32).device(list.front().parameter.device()));
    for (Updated<State>& u : list) (u.state.*number)() = common;
  }
  return common;
}

}  // namespace

BRASA_FIELDS(AdagradOptions, BRASA_F(lr) BRASA_F(lr_decay) BRASA_F(weight_decay) BRASA_F(initial_accumulator_value)
                                 BRASA_F(eps) BRASA_F(maximize))
BRASA_FIELDS(AdagradParamState, BRASA_F(sum) BRASA_COUNT)
BRASA_FIELDS(RMSpropOptions, BRASA_F(lr) BRASA_F(alpha) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(momentum)
                                 BRASA_F(centered) BRASA_F(maximize))
BRASA_FIELDS(RMSpropParamState, BRASA_COUNT BRASA_F(square_avg) BRASA_F(momentum_buffer) BRASA_F(grad_avg))
BRASA_FIELDS(AdadeltaOptions, BRASA_F(lr) BRASA_F(rho) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(AdadeltaParamState, BRASA_COUNT BRASA_F(square_avg) BRASA_F(acc_delta))
BRASA_FIELDS(AdamaxOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(AdamaxParamState, BRASA_COUNT BRASA_F(exp_avg) BRASA_F(exp_inf))
BRASA_FIELDS(ASGDOptions, BRASA_F(lr) BRASA_F(lambd) BRASA_F(alpha) BRASA_F(t0) BRASA_F(weight_decay) BRASA_F(maximize))
BRASA_FIELDS(ASGDParamState, BRASA_COUNT BRASA_F(eta) BRASA_F(mu) BRASA_F(ax))
BRASA_FIELDS(RpropOptions, BRASA_F(lr) BRASA_F(etas) BRASA_F(step_sizes) BRASA_F(maximize))
BRASA_FIELDS(RpropParamState, BRASA_COUNT BRASA_F(prev) BRASA_F(step_size))
BRASA_FIELDS(NAdamOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(momentum_decay)
                               BRASA_F(decoupled_weight_decay) BRASA_F(maximize))
BRASA_FIELDS(NAdamParamState, BRASA_COUNT BRASA_F(mu_product) BRASA_F(exp_avg) BRASA_F(exp_avg_sq))
BRASA_FIELDS(RAdamOptions, BRASA_F(lr) BRASA_F(betas) BRASA_F(eps) BRASA_F(weight_decay) BRASA_F(decoupled_weight_decay)
                               BRASA_F(maximize))
BRASA_FIELDS(RAdamParamState, BRASA_COUNT BRASA_F(exp_avg) BRASA_F(exp_avg_sq))

void AdagradOptions::check() const {
  check_common(*this);
  BRASA_CHECK(lr_decay() >= 0, "Invalid lr_decay value: ", lr_decay());
  BRASA_CHECK(initial_accumulator_value() >= 0,
              "Invalid initial_accumulator_value value: ", initial_accumulator_value());
}
void AdagradParamState::begin(const Tensor& p, const AdagradOptions& o) {
  sum(state_full_like(p, o.initial_accumulator_value()));
}
void Adagrad::update(List& list, const AdagradOptions& o) {
  Tensor lr = rate_of(o, list.front().parameter), one = number_tensor(1, list.front().parameter);
  if (o.lr_decay() != 0) lr = lr / ((list.front().state.steps() - 1) * o.lr_decay() + 1);
  for (auto& [p, g, s] : list) {
    if (!s.sum().defined()) s.begin(p, static_cast<const AdagradOptions&>(defaults()));
    if (g.is_sparse()) {
      BRASA_CHECK(o.weight_decay() == 0, "Adagrad: weight_decay is not compatible with sparse gradients");
      g = g.coalesce();
      s.sum().add_(g.square());
      Tensor scale = s.sum().sparse_mask(g)._values().sqrt().add_(o.eps());
      p.add_(_sparse_coo_tensor_unsafe(g._indices(), g._values() / scale * lr, g.sizes(), {}, true), -1);
      continue;
    }
    g = decayed(p, g, o);
    s.sum().addcmul_(g, g, 1.0);
    p._adam_update_(g, s.sum(), lr, one, o.eps());
  }
}

void RMSpropOptions::check() const {
  check_common(*this);
  BRASA_CHECK(momentum() >= 0, "Invalid momentum value: ", momentum());
  BRASA_CHECK(alpha() >= 0, "Invalid alpha value: ", alpha());
}
void RMSprop::update(List& list, const RMSpropOptions& o) {
  Tensor lr = rate_of(o, list.front().parameter), one = number_tensor(1, list.front().parameter);
  for (auto& [p, g, s] : list) {
    make(s.square_avg(), p);
    g = decayed(p, g, o);
    s.square_avg().mul_(o.alpha()).addcmul_(g, g, 1 - o.alpha());
    Tensor avg = s.square_avg();
    if (o.centered()) {
      make(s.grad_avg(), p);
      s.grad_avg().mul_(o.alpha()).add_(g, 1 - o.alpha());
      avg = avg.addcmul(s.grad_avg(), s.grad_avg(), -1);
    }
    if (o.momentum() > 0) {
      make(s.momentum_buffer(), p);
      s.momentum_buffer().mul_(o.momentum()).addcdiv_(g, avg.sqrt().add_(o.eps()));
      p.addcmul_(s.momentum_buffer(), lr, -1);
    } else {
      p._adam_update_(g, avg, lr, one, o.eps());
    }
  }
}

void AdadeltaOptions::check() const {
  check_common(*this);
  BRASA_CHECK(0 <= rho() && rho() <= 1, "Adadelta: Invalid rho value: ", rho());
}
void Adadelta::update(List& list, const AdadeltaOptions& o) {
  Tensor lr = rate_of(o, list.front().parameter);
  for (auto& [p, g, s] : list) {
    make(s.square_avg(), p);
    make(s.acc_delta(), p);
    g = decayed(p, g, o);
    s.square_avg().mul_(o.rho()).addcmul_(g, g, 1 - o.rho());
    Tensor delta = s.acc_delta().add(o.eps()).sqrt_().div_(s.square_avg().add(o.eps()).sqrt_()).mul_(g);
    s.acc_delta().mul_(o.rho()).addcmul_(delta, delta, 1 - o.rho());
    p.addcmul_(delta, lr, -1);
  }
}

void AdamaxOptions::check() const { check_common(*this); }
void Adamax::update(List& list, const AdamaxOptions& o) {
  auto [beta1, beta2] = o.betas();
  Tensor step_size = std::get<0>(adam_scales(o, list.front().state.steps(), list.front().parameter));
  for (auto& [p, g, s] : list) {
    make(s.exp_avg(), p);
    make(s.exp_inf(), p);
    g = decayed(p, g, o);
    s.exp_avg().lerp_(g, 1 - beta1);
    s.exp_inf().copy_(maximum(s.exp_inf().mul(beta2), g.abs().add_(o.eps())));
    p.addcmul_(s.exp_avg() / s.exp_inf(), step_size, -1);
  }
}

void ASGDOptions::check() const { check_common(*this); }
void ASGD::update(List& list, const ASGDOptions& o) {
  const Tensor& first = list.front().parameter;
  Tensor t = list.front().state.steps(), lr = rate_of(o, first);
  Tensor eta = shared(list, &ASGDParamState::eta, 0), mu = shared(list, &ASGDParamState::mu, 1);
  eta.copy_(where(t == 1, lr, eta));
  for (auto& [p, g, s] : list) {
    make(s.ax(), p);
    g = decayed(p, g, o);
    p.addcmul_(p, eta, -o.lambd());
    p.addcmul_(g, eta, -1);
    s.ax().lerp_(p, mu);
  }
  eta.copy_(lr / (lr * t * o.lambd() + 1).pow(o.alpha()));
  mu.copy_((t - o.t0()).clamp_min(1).reciprocal());
}

void RpropOptions::check() const {
  check_common(*this);
  BRASA_CHECK(0 < std::get<0>(etas()) && std::get<0>(etas()) < 1 && 1 < std::get<1>(etas()),
              "Rprop: Invalid eta values: ", std::get<0>(etas()), ", ", std::get<1>(etas()));
}
void Rprop::update(List& list, const RpropOptions& o) {
  auto [shrink, grow] = o.etas();
  auto [least, most] = o.step_sizes();
  for (auto& [p, g, s] : list) {
    make(s.prev(), p);
    make(s.step_size(), p, o.lr());
    Tensor agreement = g.mul(s.prev());
    Tensor up = agreement > 0, down = agreement < 0;
    Tensor factor = ones_like(g).masked_fill(up, grow).masked_fill(down, shrink);
    s.step_size().mul_(factor).clamp_(least, most);
    g = g.masked_fill(down, 0);
    p.sub_(g.sign().mul_(s.step_size()));
    s.prev().copy_(g);
  }
}

void NAdamOptions::check() const {
  check_common(*this);
  BRASA_CHECK(momentum_decay() >= 0, "NAdam: Invalid momentum_decay value: ", momentum_decay());
}
void NAdam::update(List& list, const NAdamOptions& o) {
  auto [beta1, beta2] = o.betas();
  const Tensor& first = list.front().parameter;
  Tensor correction = std::get<1>(adam_scales(o, list.front().state.steps(), first));
  Tensor t = list.front().state.steps().to(number_dtype(first));
  auto momentum = [&, b = beta1](const Tensor& step) {
    return (step * (std::log(0.96) * o.momentum_decay())).exp() * (-0.5 * b) + b;
  };
  Tensor mu = momentum(t), next = momentum(t + 1), product = shared(list, &NAdamParamState::mu_product, 1).mul_(mu);
  // The gradient's part of the step, and the running mean's beside it.
  Tensor of_grad = (1 - mu) / (1 - product), of_mean = next / (1 - product * next);
  Tensor size = rate_of(o, first) * of_grad, weight = of_mean / of_grad;
  for (auto& [p, g, s] : list) {
    g = averaged(p, g, s, o, o.decoupled_weight_decay());
    p._adam_update_(g.addcmul(s.exp_avg(), weight), s.exp_avg_sq(), size, correction, o.eps());
  }
}

void RAdamOptions::check() const { check_common(*this); }
void RAdam::update(List& list, const RAdamOptions& o) {
  auto [beta1, beta2] = o.betas();
  const Tensor& first = list.front().parameter;
  // ρ of the paper: the length of the simple moving average that approximates the exponential one. It is a small difference of large
  // numbers, so that float32 is not enough.
  Tensor t = list.front().state.steps().to(kFloat64), rest2 = -(t * std::log(beta2)).expm1();
  double longest = 2 / (1 - beta2) - 1;
  Tensor length = longest - 2 * t * (1 - rest2) / rest2, rectified = length > 5;
  Tensor ratio = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length);
  Tensor scale = where(rectified, (ratio * rest2).sqrt(), 1).to(number_dtype(first));
  Tensor size = std::get<0>(adam_scales(o, list.front().state.steps(), first)) * scale;
  for (auto& [p, g, s] : list) {
    averaged(p, g, s, o, o.decoupled_weight_decay());
    p.addcmul_(s.exp_avg() / where(rectified, s.exp_avg_sq().sqrt().add_(o.eps()), 1), size, -1);
  }
}

}  // namespace brasa::optim
