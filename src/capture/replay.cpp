#include "capture/replay.h"

#include <algorithm>
#include <forward_list>
#include <span>

#include "support/error.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"

namespace brasa::capture {
namespace {

template <class F>
void each_operand(const Event& e, F f) {
  for (const ir::Arg& a : e.args) {
    if (auto* v = a.get_if<ir::Value>(); v && !is_argument(*v) && v->index > 0) f(v->index - 1);
    if (auto* list = a.get_if<std::vector<ir::Value>>())
      for (ir::Value v : *list)
        if (v.index > 0) f(v.index - 1);
  }
}

// The values that the roots depend on.
std::vector<bool> live_values(const Joint& joint) {
  std::vector<bool> live(joint.trace.types.size());
  for (Number n : joint.roots) live[n] = true;
  for (size_t i = joint.events; i-- > 0;) {
    const Event& e = joint.trace.events[i];
    if (std::find(live.begin() + e.first, live.begin() + e.first + e.count, true) != live.begin() + e.first + e.count)
      each_operand(e, [&](Number n) { live[n] = true; });
  }
  return live;
}

// Views and writes through them only move values, as do the conversions that dispatch adds: gradients always pass.
bool moves(const ops::Row& row) { return row.view || row.is_primitive() || !ops::find(row.name()); }

std::vector<Tensor> call(const Event& e, const std::vector<Tensor>& values, std::span<const Tensor> arguments,
                         const std::vector<bool>* needs) {
  AutoGradMode mode(needs || moves(*e.row));
  size_t operand = 0;
  auto value_of = [&](ir::Value v) {
    const Tensor& t = values[v.index - 1];
    size_t k = operand++;
    return !needs || (k < needs->size() && (*needs)[k]) ? t : t.detach();
  };
  std::vector<Tensor> single(e.args.size());
  std::vector<std::vector<std::optional<Tensor>>> lists(e.args.size());
  std::vector<CallArg> args;
  std::forward_list<Scalar> numbers;
  eager::Literals literals;
  for (size_t k = 0; k < e.args.size(); ++k) {
    if (auto* v = e.args[k].get_if<ir::Value>(); v && is_argument(*v)) {
      args.emplace_back(numbers.emplace_front(arguments[v->index].item()));
    } else if (v) {
      if (v->index > 0) single[k] = value_of(*v);
      args.emplace_back(single[k]);
    } else if (auto* list = e.args[k].get_if<std::vector<ir::Value>>()) {
      for (ir::Value v : *list) lists[k].push_back(v.index > 0 ? std::optional(value_of(v)) : std::nullopt);
      args.emplace_back(ArrayRef<std::optional<Tensor>>(lists[k]));
    } else {
      args.push_back(literals.of(e.args[k], e.row->schema.params[k]));
    }
  }
  return eager::call_list(eager::op(*e.row), args);
}

}  // namespace

std::vector<Tensor> replay(const Joint& joint, const Binding& binding, const std::vector<Tensor>& inputs,
                           const std::vector<bool>& written) {
  const Trace trace = joint.trace.sized(binding);
  std::vector<bool> live = live_values(joint);
  std::vector<Tensor> values(live.size());
  size_t input = 0;
  for (size_t i = 0; i < joint.events; ++i) {
    const Event& e = trace.events[i];
    bool needed =
        std::find(live.begin() + e.first, live.begin() + e.first + e.count, true) != live.begin() + e.first + e.count;
    if (!e.row) {
      BRASA_CHECK(
          !needed || !written[input],
          "second derivatives through a compiled function that writes into a tensor which they depend on are not "
          "there: compile the function without the write, or call it uncompiled");
      values[e.first] = inputs[input++];
    } else if (needed) {
      auto it = joint.needs.find(static_cast<uint32_t>(i));
      std::vector<Tensor> results =
          call(e, values, std::span(inputs).subspan(trace.own_inputs), it == joint.needs.end() ? nullptr : &it->second);
      std::move(results.begin(), results.end(), values.begin() + e.first);
    }
  }
  std::vector<Tensor> out;
  for (Number n : joint.roots) out.push_back(values[n]);
  return out;
}

}  // namespace brasa::capture
