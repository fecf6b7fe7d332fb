#include "capture/event_call.h"

#include "capture/matching.h"

namespace brasa::capture {

EventCall::EventCall(const Event& e, const Binding& binding, const std::function<Tensor(Number)>& value) {
  for (size_t k = 0; k < e.args.size(); ++k) args_.push_back(of(e.args[k], e.row->schema.params[k], binding, value));
}

CallArg EventCall::of(const ir::Arg& a, const ir::Param& p, const Binding& binding,
                      const std::function<Tensor(Number)>& value) {
  auto tensor = [&](ir::Value v) { return v.index > 0 ? value(v.index - 1) : Tensor(); };
  if (auto* v = a.get_if<ir::Value>(); v && !is_argument(*v)) return CallArg(tensors_.emplace_front(tensor(*v)));
  if (auto* list = a.get_if<std::vector<ir::Value>>()) {
    if (p.optional_items) {
      auto& items = optionals_.emplace_front();
      for (ir::Value v : *list) items.push_back(v.index > 0 ? std::optional(tensor(v)) : std::nullopt);
      return CallArg(ArrayRef<std::optional<Tensor>>(items));
    }
    auto& items = lists_.emplace_front();
    for (ir::Value v : *list) items.push_back(tensor(v));
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

}  // namespace brasa::capture
