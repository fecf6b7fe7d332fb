#include <map>
#include <tuple>

#include <brasa/brasa.h>
#include <brasa/optim/optimizer.h>

#include "optim/state.h"

// Counts of updates, which parameters that are updated together have in common: counted, and corrected for, once.
namespace brasa::optim {
namespace {

// What parameters have to have in common if they have a count in common.
std::pair<Device, bool> kind_of(const Tensor& p) { return {p.device(), p.scalar_type() == kFloat64}; }

struct Together {
  Tensor steps;
  std::vector<Tensor> params;
  std::vector<CountedParamState*> states;
};

// A parameter that sits this update out keeps its numbers; the others go on with copies.
void part(Together& t) {
  std::vector<Tensor> copies;
  for (const Tensor* number : t.states.front()->numbers())
    copies.push_back(number->defined() ? number->clone() : Tensor());
  for (CountedParamState* s : t.states) {
    std::vector<Tensor*> numbers = s->numbers();
    for (size_t i = 0; i < numbers.size(); ++i) *numbers[i] = copies[i];
  }
  t.steps = copies.front();
}

}  // namespace

std::vector<std::vector<Tensor>> Optimizer::updated_together(const std::vector<Tensor>& params) {
  std::vector<Together> counted;
  std::vector<std::pair<std::pair<Device, bool>, Tensor>> fresh;
  std::vector<Tensor> uncounted;
  auto fresh_count = [&](const Tensor& p) {
    for (auto& [kind, steps] : fresh)
      if (kind == kind_of(p)) return steps;
    return fresh.emplace_back(kind_of(p), state_full({}, 0, TensorOptions(kFloat32).device(p.device()))).second;
  };
  auto with = [&](const Tensor& steps) -> Together& {
    for (Together& t : counted)
      if (t.steps.is_same(steps)) return t;
    return counted.emplace_back(Together{steps, {}, {}});
  };
  for (const Tensor& p : params) {
    if (!p.grad().defined()) continue;
    std::unique_ptr<OptimizerParamState>& state = state_[p.impl()];
    if (!state) state = new_state();
    auto* counts = dynamic_cast<CountedParamState*>(state.get());
    if (!counts) {
      uncounted.push_back(p);
      continue;
    }
    if (!counts->steps().defined()) counts->steps() = fresh_count(p);
    Together& t = with(counts->steps());
    t.params.push_back(p);
    t.states.push_back(counts);
  }
  for (const Tensor& p : params) {
    auto* idle = p.grad().defined() ? nullptr : dynamic_cast<CountedParamState*>(find_state(p));
    for (Together& t : counted)
      if (idle && t.steps.is_same(idle->steps())) part(t);
  }
  std::vector<std::vector<Tensor>> out;
  for (Together& t : counted) {
    t.steps.add_(1);
    out.push_back(std::move(t.params));
  }
  if (!uncounted.empty()) out.push_back(std::move(uncounted));
  return out;
}

void Optimizer::share_counts() {
  using Key = std::tuple<std::string, bool, std::vector<double>>;
  for (OptimizerParamGroup& group : param_groups_) {
    std::map<Key, std::vector<Tensor>> shared;  // each group counts for itself
    for (const Tensor& p : group.params()) {
      auto* state = dynamic_cast<CountedParamState*>(find_state(p));
      if (!state) continue;
      std::vector<Tensor*> numbers = state->numbers();
      Key key{p.device().str(), p.scalar_type() == kFloat64, {}};
      for (const Tensor* n : numbers) std::get<2>(key).push_back(n->defined() ? n->item<double>() : -1);
      auto [at, fresh] = shared.try_emplace(std::move(key));
      for (size_t i = 0; i < numbers.size(); ++i) {
        // Of what is loaded a copy: an archive in memory has the tensors themselves.
        if (fresh)
          at->second.push_back(numbers[i]->defined() ? numbers[i]->to(p.device(), kFloat32).clone() : Tensor());
        *numbers[i] = at->second[i];
      }
    }
  }
}

}  // namespace brasa::optim
