#pragma once

#include <cmath>
#include <tuple>

#include <brasa/brasa.h>
#include <brasa/optim/optimizer.h>

#include "optim/state.h"
#include "support/error.h"

// The lists of fields, and what most optimizers want of their options and do with them.
namespace brasa::optim {

template <class Options>
void check_rate(const Options& o) {
  if (o.lr_tensor().defined()) return;
  BRASA_CHECK(o.lr() >= 0, "Invalid learning rate: ", o.lr());
}

template <class Options>
void check_common(const Options& o) {
  check_rate(o);
  if constexpr (requires { o.eps(); }) BRASA_CHECK(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
  if constexpr (requires { o.weight_decay(); })
    BRASA_CHECK(o.weight_decay() >= 0, "Invalid weight_decay value: ", o.weight_decay());
  if constexpr (requires { o.betas(); }) {
    auto [beta1, beta2] = o.betas();
    BRASA_CHECK(0 <= beta1 && beta1 < 1, "Invalid beta parameter at index 0: ", beta1);
    BRASA_CHECK(0 <= beta2 && beta2 < 1, "Invalid beta parameter at index 1: ", beta2);
  }
}

/// The tensor that is the learning rate; undefined where a number is.
template <class Options>
Tensor tensor_rate(const Options& o) {
  Tensor lr = o.lr_tensor();
  BRASA_CHECK(lr.defined() || !std::isnan(o.lr()), "the learning rate is not a number");
  return lr;
}

/// In what the numbers of a parameter's update are computed.
inline DType number_dtype(const Tensor& p) { return p.scalar_type() == kFloat64 ? kFloat64 : kFloat32; }
inline Tensor number_tensor(double value, const Tensor& p) {
  return full({}, value, TensorOptions(number_dtype(p)).device(p.device()));
}
/// The learning rate as a tensor without dimensions.
template <class Options>
Tensor rate_of(const Options& o, const Tensor& p) {
  Tensor lr = tensor_rate(o);
  return lr.defined() ? lr : number_tensor(o.lr(), p);
}

/// lr / (1 - beta1^t) and sqrt(1 - beta2^t) after t steps.
template <class Options>
std::tuple<Tensor, Tensor> adam_scales(const Options& o, const Tensor& steps, const Tensor& p) {
  auto [beta1, beta2] = o.betas();
  Tensor lr = tensor_rate(o);
  auto [step_size, correction] =
      _adam_scales(steps, lr.defined() ? 1 : o.lr(), std::log(beta1), std::log(beta2), number_dtype(p));
  return {lr.defined() ? step_size * lr : step_size, correction};
}

/// The gradient with weight decay; where that is decoupled, the parameter shrinks instead.
template <class Options>
Tensor decayed(Tensor& p, const Tensor& g, const Options& o, bool decoupled = false) {
  if (o.weight_decay() == 0) return g;
  if (!decoupled) return g.add(p, o.weight_decay());
  if (Tensor lr = tensor_rate(o); lr.defined())
    p.mul_(1 - lr * o.weight_decay());
  else
    p.mul_(1 - o.lr() * o.weight_decay());
  return g;
}

/// The gradient with weight decay, which the running means of it and of its square have taken in.
template <class State, class Options>
Tensor averaged(Tensor& p, const Tensor& g, State& s, const Options& o, bool decoupled) {
  auto [beta1, beta2] = o.betas();
  make(s.exp_avg(), p);
  make(s.exp_avg_sq(), p);
  Tensor grad = decayed(p, g, o, decoupled);
  s.exp_avg().lerp_(grad, 1 - beta1);
  s.exp_avg_sq()._adam_second_moment_(grad, beta2);
  return grad;
}

#define BRASA_F(field) f(#field, field());
#define BRASA_COUNT f("step", steps(), true);
#define BRASA_FIELDS(Type, fields) \
  bool Type::visit(FieldVisitor& f) { fields return true; }

}  // namespace brasa::optim
