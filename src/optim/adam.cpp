#include <brasa/optim/adam.h>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {

template <class Derived>
bool AdamLikeOptions<Derived>::visit(FieldVisitor& f) {
  auto& [beta1, beta2] = betas_;
  f("lr", lr_);
  f("beta1", beta1);
  f("beta2", beta2);
  f("eps", eps_);
  f("weight_decay", weight_decay_);
  f("amsgrad", amsgrad_);
  f("maximize", maximize_);
  return true;
}
template <class Derived>
void AdamLikeOptions<Derived>::check() const {
  check_common(*this);
}
bool AdamOptions::visit(FieldVisitor& f) {
  AdamLikeOptions::visit(f);
  f.added("decoupled_weight_decay", decoupled_weight_decay(), false);
  return true;
}
template struct AdamLikeOptions<AdamOptions>;
template struct AdamLikeOptions<AdamWOptions>;

bool AdamParamState::visit(FieldVisitor& f) {
  f("step", steps(), true);
  f("exp_avg", exp_avg(), true);
  f("exp_avg_sq", exp_avg_sq(), true);
  f("max_exp_avg_sq", max_exp_avg_sq());
  return true;
}

namespace {

template <class Options, class List>
void adam_update(List& list, const Options& o, bool decoupled) {
  auto [step_size, correction] = adam_scales(o, list.front().state.steps(), list.front().parameter);
  for (auto& [p, grad, state] : list) {
    BRASA_CHECK(!grad.is_sparse(), "Adam does not support sparse gradients, please consider SparseAdam instead");
    averaged(p, grad, state, o, decoupled);
    Tensor largest = state.exp_avg_sq();
    if (o.amsgrad()) {
      make(state.max_exp_avg_sq(), p);
      largest = state.max_exp_avg_sq();
      maximum_out(largest, largest, state.exp_avg_sq());
    }
    p._adam_update_(state.exp_avg(), largest, step_size, correction, o.eps());
  }
}

}  // namespace

void Adam::update(List& list, const AdamOptions& o) { adam_update(list, o, o.decoupled_weight_decay()); }
void AdamW::update(List& list, const AdamWOptions& o) { adam_update(list, o, true); }

}  // namespace brasa::optim
