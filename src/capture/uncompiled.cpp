#include "capture/uncompiled.h"

#include <algorithm>

#include <brasa/autograd.h>

#include "capture/event_call.h"
#include "support/error.h"
#include "tensor/autograd/meta.h"
#include "tensor/parse.h"
#include "tensor/recorder.h"

namespace brasa::capture {

std::vector<Tensor> argument_tensors(const Trace& trace, const Binding& binding) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < trace.arguments.size(); ++k) {
    const Argument& a = trace.arguments[k];
    if (a.size) {
      out.push_back(make_tensor(StorageRef(Storage::make(1)), DType::Bool, Sizes{binding(*a.size)}, Sizes{0}, 0));
      *static_cast<bool*>(impl_of(out.back())->storage->data()) = false;
      impl_of(out.back())->storage->set_travels();
      continue;
    }
    out.push_back(eager::weak_tensor(*binding.numbers[k]));
  }
  return out;
}

namespace {

void run(const Trace& trace, const Event& e, const Binding& binding, std::vector<Tensor>& values) {
  std::vector<Tensor> results = run_event(e, binding, [&](Number n) { return values[n]; });
  for (uint32_t r = 0; r < e.count; ++r) {
    Tensor& value = values[e.first + r] = std::move(results[r]);
    if (!value.defined()) continue;
    // Eager gradients of what was broadcast have yet to be summed.
    Sizes sizes;
    for (ir::Expr s : trace.types[e.first + r].shape) sizes.push_back(binding(s));
    value = autograd::sum_to_size(value, sizes);
  }
}

}  // namespace

std::vector<Tensor> values_until_error(const Trace& trace, const Binding& binding, std::span<const Tensor> inputs,
                                       size_t& reached) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  std::vector<Tensor> values(trace.types.size());
  size_t input = 0;
  for (size_t i = 0; i < reached; ++i) {
    const Event& e = trace.events[i];
    if (!e.row) {
      // A copy: what the segment leaves is written when all is known. A random key is written by nobody.
      const Tensor& given = inputs[input++];
      values[e.first] = impl_of(given)->storage->travels() ? given : given.detach().clone();
      continue;
    }
    try {
      run(trace, e, binding, values);
    } catch (const Error&) {
      reached = i;
    }
  }
  return values;
}

std::vector<Tensor> run_uncompiled(const Trace& trace, size_t events, const Binding& binding,
                                   std::span<const Tensor> inputs, const std::vector<Delivery>& deliveries) {
  Recorder::Scope alone(nullptr);
  NoGradGuard guard;
  // The event behind which each value is no longer needed.
  std::vector<size_t> last(trace.types.size(), 0);
  for (const Delivery& d : deliveries) last[d.number] = events + 1;
  auto needed = [&](const Event& e) {
    return std::any_of(last.begin() + e.first, last.begin() + e.first + e.count, [](size_t at) { return at != 0; });
  };
  for (size_t i = events; i-- > 0;)
    if (trace.events[i].row && needed(trace.events[i]))
      each_operand(trace.events[i], [&](Number n) { last[n] = std::max(last[n], i + 1); });

  std::vector<Tensor> values(trace.types.size());
  size_t input = 0;
  for (size_t i = 0; i < events; ++i) {
    const Event& e = trace.events[i];
    if (!e.row) {
      values[e.first] = inputs[input++].detach();
      continue;
    }
    if (!needed(e)) continue;
    run(trace, e, binding, values);
    each_operand(e, [&](Number n) {
      if (last[n] == i + 1) values[n].reset();
    });
  }
  std::vector<Tensor> out;
  for (const Delivery& d : deliveries) out.push_back(values[d.number].clone());
  return out;
}

}  // namespace brasa::capture
