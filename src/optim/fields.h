#pragma once

#include <cmath>

#include <brasa/brasa.h>
#include <brasa/optim/optimizer.h>

#include "support/error.h"

// The lists of fields, and what most optimizers want of their options and do with them.
namespace brasa::optim {

template <class Options>
void check_common(const Options& o) {
  BRASA_CHECK(o.lr() >= 0, "Invalid learning rate: ", o.lr());
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
  if constexpr (requires { o.lr_tensor(); }) {
    Tensor lr = o.lr_tensor();
    BRASA_CHECK(lr.defined() || !std::isnan(o.lr()), "the learning rate is not a number");
    return lr;
  }
  return {};
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

#define BRASA_F(field) f(#field, field());
#define BRASA_FIELDS(Type, fields) \
  bool Type::visit(FieldVisitor& f) { fields return true; }

}  // namespace brasa::optim
