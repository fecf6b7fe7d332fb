#include <brasa/optim/adam.h>

#include <cmath>
#include <map>

#include <brasa/brasa.h>

#include "optim/fields.h"
#include "optim/state.h"
#include "support/error.h"

namespace brasa::optim {

template <class Derived>
std::unique_ptr<OptimizerOptions> AdamLikeOptions<Derived>::fresh() const {
  return std::make_unique<Derived>();
}
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
template struct AdamLikeOptions<AdamOptions>;
template struct AdamLikeOptions<AdamWOptions>;

AdamParamState& AdamParamState::step(int64_t count) {
  steps_ = scalar_tensor(count, kFloat32);
  return *this;
}
bool AdamParamState::visit(FieldVisitor& f) {
  f("step", steps(), true);
  f("exp_avg", exp_avg(), true);
  f("exp_avg_sq", exp_avg_sq(), true);
  f("max_exp_avg_sq", max_exp_avg_sq());
  return true;
}

namespace {

template <class Options>
void check(const std::vector<OptimizerParamGroup>& groups) {
  for (const OptimizerParamGroup& group : groups) {
    const auto& o = static_cast<const Options&>(group.options());
    auto [beta1, beta2] = o.betas();
    BRASA_CHECK(o.lr_tensor().defined() || o.lr() >= 0, "Invalid learning rate: ", o.lr());
    BRASA_CHECK(o.eps() >= 0, "Invalid epsilon value: ", o.eps());
    BRASA_CHECK(0 <= beta1 && beta1 < 1, "Invalid beta parameter at index 0: ", beta1);
    BRASA_CHECK(0 <= beta2 && beta2 < 1, "Invalid beta parameter at index 1: ", beta2);
    BRASA_CHECK(o.weight_decay() >= 0, "Invalid weight_decay value: ", o.weight_decay());
  }
}

// Parameters whose step count is the same tensor; counted and corrected for once.
struct Together {
  Tensor step;
  std::vector<std::pair<Tensor, AdamParamState*>> members;
};

std::vector<Together> counted(const std::vector<Tensor>& params, Optimizer::State& states) {
  std::vector<Together> out;
  Tensor fresh;
  auto group_of = [&](const Tensor& step) -> Together& {
    for (Together& t : out)
      if (t.step.is_same(step)) return t;
    return out.emplace_back(Together{step, {}});
  };
  for (const Tensor& p : params) {
    if (!p.grad().defined()) continue;
    std::unique_ptr<OptimizerParamState>& known = states[p.impl()];
    if (!known) known = std::make_unique<AdamParamState>();
    auto& state = static_cast<AdamParamState&>(*known);
    if (!state.steps().defined()) {
      if (!fresh.defined() || fresh.device() != p.device())
        fresh = state_zeros({}, TensorOptions(kFloat32).device(p.device()));
      state.steps(fresh);
      state.exp_avg(state_zeros_like(p));
      state.exp_avg_sq(state_zeros_like(p));
    }
    group_of(state.steps()).members.emplace_back(p, &state);
  }
  // A parameter that sits this step out keeps its count; the others go on with a copy.
  for (const Tensor& p : params) {
    auto it = states.find(p.impl());
    if (p.grad().defined() || it == states.end()) continue;
    const Tensor& step = static_cast<AdamParamState&>(*it->second).steps();
    for (Together& t : out)
      if (t.step.is_same(step)) {
        t.step = step.clone();
        for (auto& [parameter, state] : t.members) state->steps(t.step);
      }
  }
  return out;
}

// Equal counts become one tensor again after they were read one by one.
void share_steps(Optimizer::State& states) {
  std::map<double, Tensor> by_value;
  for (auto& [key, state] : states) {
    Tensor& step = static_cast<AdamParamState&>(*state).steps();
    step = by_value.try_emplace(step.item<double>(), step.to(kFloat32)).first->second;
  }
}

template <class Options>
void adam_update(OptimizerParamGroup& group, Optimizer::State& states, bool decoupled) {
  const auto& o = static_cast<const Options&>(group.options());
  auto [beta1, beta2] = o.betas();
  Tensor lr = tensor_rate(o);
  for (Together& together : counted(group.params(), states)) {
    together.step.add_(1);
    Tensor step_size, correction;
    DType scale_type = DType::Bool;
    for (auto& [p, state] : together.members) {
      DType wanted = p.scalar_type() == kFloat64 ? kFloat64 : kFloat32;
      if (wanted != scale_type) {
        double number = lr.defined() ? 1 : o.lr();
        std::tie(step_size, correction) = _adam_scales(together.step, number, std::log(beta1), std::log(beta2), wanted);
        if (lr.defined()) step_size = step_size * lr;
        scale_type = wanted;
      }
      BRASA_CHECK(!p.grad().is_sparse(), "Adam does not support sparse gradients, please consider SparseAdam instead");
      Tensor grad = o.maximize() ? -p.grad() : p.grad();
      grad = decayed(p, grad, o, decoupled);
      state->exp_avg().lerp_(grad, 1 - beta1);
      state->exp_avg_sq()._adam_second_moment_(grad, beta2);
      Tensor largest = state->exp_avg_sq();
      if (o.amsgrad()) {
        if (!state->max_exp_avg_sq().defined()) state->max_exp_avg_sq(state_zeros_like(p));
        largest = state->max_exp_avg_sq();
        maximum_out(largest, largest, state->exp_avg_sq());
      }
      p._adam_update_(state->exp_avg(), largest, step_size, correction, o.eps());
    }
  }
}

}  // namespace

Adam::Adam(const std::vector<OptimizerParamGroup>& param_groups, AdamOptions defaults)
    : Optimizer(param_groups, std::make_unique<AdamOptions>(defaults)) {
  check<AdamOptions>(param_groups_);
}
std::unique_ptr<OptimizerParamState> Adam::new_state() const { return std::make_unique<AdamParamState>(); }
void Adam::load(serialize::InputArchive& archive) {
  Optimizer::load(archive);
  share_steps(state_);
}
void Adam::update(OptimizerParamGroup& group) { adam_update<AdamOptions>(group, state_, false); }

AdamW::AdamW(const std::vector<OptimizerParamGroup>& param_groups, AdamWOptions defaults)
    : Optimizer(param_groups, std::make_unique<AdamWOptions>(defaults)) {
  check<AdamWOptions>(param_groups_);
}
std::unique_ptr<OptimizerParamState> AdamW::new_state() const { return std::make_unique<AdamParamState>(); }
void AdamW::load(serialize::InputArchive& archive) {
  Optimizer::load(archive);
  share_steps(state_);
}
void AdamW::update(OptimizerParamGroup& group) { adam_update<AdamWOptions>(group, state_, true); }

}  // namespace brasa::optim
