#include "capture/uncompiled.h"

#include <algorithm>
#include <cstring>
#include <forward_list>
#include <memory>

#include <brasa/autograd.h>

#include "capture/matching.h"
#include "support/error.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"
#include "tensor/recorder.h"

namespace brasa::capture {

std::vector<Tensor> argument_tensors(const Trace& trace, const Binding& binding) {
  std::vector<Tensor> out;
  for (size_t k = 0; k < trace.arguments.size(); ++k) {
    const Argument& a = trace.arguments[k];
    if (a.size) {
      out.push_back(make_tensor(StorageRef(Storage::make(1)), DType::Bool, Sizes{binding(*a.size)}, Sizes{0}, 0));
      *static_cast<bool*>(impl_of(out.back())->storage->data()) = false;
      continue;
    }
    const Scalar& s = *binding.numbers[k];
    Tensor t = make_tensor({}, a.dtype);
    void* to = impl_of(t)->storage->data();
    auto put = [&](auto v) { std::memcpy(to, &v, sizeof v); };
    if (s.isBoolean())
      put(s.toBool());
    else if (s.isFloatingPoint())
      put(s.toDouble());
    else if (s.isComplex())
      put(s.toComplexDouble());
    else
      put(s.toLong());
    impl_of(t)->weak = true;
    out.push_back(std::move(t));
  }
  return out;
}

compiler::Operand operand_of(const Tensor& t) {
  const TensorImpl& impl = *impl_of(t);
  return {static_cast<char*>(impl.storage->data()) + impl.offset * size_of(impl.dtype), impl.dtype, impl.sizes,
          impl.strides};
}

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

// The arguments of one event as a call has them.
class Given {
 public:
  Given(const Event& e, const std::vector<Tensor>& values, const Binding& binding) {
    for (size_t k = 0; k < e.args.size(); ++k) args_.push_back(of(e.args[k], e.row->schema.params[k], values, binding));
  }
  std::span<const CallArg> args() const { return args_; }

 private:
  CallArg of(const ir::Arg& a, const ir::Param& p, const std::vector<Tensor>& values, const Binding& binding) {
    auto value = [&](ir::Value v) { return v.index > 0 ? values[v.index - 1] : Tensor(); };
    if (auto* v = a.get_if<ir::Value>(); v && !is_argument(*v)) return CallArg(tensors_.emplace_front(value(*v)));
    if (auto* list = a.get_if<std::vector<ir::Value>>()) {
      if (p.optional_items) {
        auto& items = optionals_.emplace_front();
        for (ir::Value v : *list) items.push_back(v.index > 0 ? std::optional(value(v)) : std::nullopt);
        return CallArg(ArrayRef<std::optional<Tensor>>(items));
      }
      auto& items = lists_.emplace_front();
      for (ir::Value v : *list) items.push_back(value(v));
      return CallArg(items);
    }
    if (auto* list = a.get_if<std::vector<ir::Expr>>()) {
      auto& items = ints_.emplace_front();
      for (ir::Expr e : *list) items.push_back(binding(e));
      return CallArg(items);
    }
    if (auto n = number_of(a, binding)) {
      if (p.type == ir::ParamType::Scalar) return CallArg(scalars_.emplace_front(*n));
      if (n->isBoolean()) return n->toBool();
      if (n->isFloatingPoint()) return n->toDouble();
      return n->toLong();
    }
    return literals_.of(a, p);
  }

  std::vector<CallArg> args_;
  std::forward_list<Tensor> tensors_;
  std::forward_list<std::vector<Tensor>> lists_;
  std::forward_list<std::vector<std::optional<Tensor>>> optionals_;
  std::forward_list<std::vector<int64_t>> ints_;
  std::forward_list<Scalar> scalars_;
  eager::Literals literals_;
};

}  // namespace

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
    Given given(e, values, binding);
    eager::Results results;
    eager::call_functional(eager::op(*e.row), eager::CallArgs(given.args().data(), given.args().size()), results);
    BRASA_ASSERT(results.size() == e.count, e.row->name(), " gave ", results.size(), " results");
    for (uint32_t r = 0; r < e.count; ++r) values[e.first + r] = std::move(results[r]);
    each_operand(e, [&](Number n) {
      if (last[n] == i + 1) values[n].reset();
    });
  }
  std::vector<Tensor> out;
  for (const Delivery& d : deliveries) out.push_back(values[d.number].clone());
  return out;
}

}  // namespace brasa::capture
