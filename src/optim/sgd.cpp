#include <brasa/optim/sgd.h>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {

BRASA_FIELDS(SGDOptions,
             BRASA_F(lr) BRASA_F(momentum) BRASA_F(dampening) BRASA_F(weight_decay) BRASA_F(nesterov) BRASA_F(maximize))
BRASA_FIELDS(SGDParamState, f("momentum_buffer", momentum_buffer(), true);)

SGD::SGD(const std::vector<OptimizerParamGroup>& param_groups, SGDOptions defaults)
    : Optimizer(param_groups, std::make_unique<SGDOptions>(defaults)) {
  for (const OptimizerParamGroup& group : param_groups_) {
    const auto& o = static_cast<const SGDOptions&>(group.options());
    BRASA_CHECK(o.lr_tensor().defined() || o.lr() >= 0, "Invalid learning rate: ", o.lr());
    BRASA_CHECK(o.momentum() >= 0, "Invalid momentum value: ", o.momentum());
    BRASA_CHECK(o.weight_decay() >= 0, "Invalid weight_decay value: ", o.weight_decay());
    BRASA_CHECK(!o.nesterov() || (o.momentum() > 0 && o.dampening() == 0),
                "Nesterov momentum requires a momentum and zero dampening");
  }
}

std::unique_ptr<OptimizerParamState> SGD::new_state() const { return std::make_unique<SGDParamState>(); }

void SGD::update(OptimizerParamGroup& group) {
  const auto& o = static_cast<const SGDOptions&>(group.options());
  Tensor lr = tensor_rate(o);
  for (const Tensor& p : group.params()) {
    if (!p.grad().defined()) continue;
    Tensor d = o.maximize() ? -p.grad() : p.grad();
    if (o.weight_decay() != 0) d = d.add(p, o.weight_decay());
    auto& state = static_cast<SGDParamState&>(*state_.try_emplace(p.impl(), new_state()).first->second);
    if (o.momentum() != 0) {
      Tensor& buffer = state.momentum_buffer();
      if (buffer.defined() || o.dampening() == 0) {
        if (!buffer.defined()) buffer = state_zeros_like(p);
        buffer.mul_(o.momentum()).add_(d, 1 - o.dampening());
      } else {
        buffer = d.clone();  // the first direction is not dampened
      }
      d = o.nesterov() ? d.add(buffer, o.momentum()) : buffer;
    }
    if (lr.defined())
      p.addcmul_(d, lr, -1);
    else
      p.add_(d, -o.lr());
  }
}

}  // namespace brasa::optim
