#include "capture/event_call.h"

#include <forward_list>
#include <optional>
#include <utility>

#include "capture/matching.h"
#include "support/error.h"
#include "tensor/args.h"
#include "tensor/dispatch.h"

namespace brasa::capture {
namespace {

// The arguments of an event as a call has them. They point into this.
class EventCall {
 public:
  EventCall(const Binding& binding, std::function<Tensor(Number)> value)
      : binding_(binding), value_(std::move(value)) {}

  CallArg argument(const ir::Arg& a, const ir::Param& p) {
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
      std::vector<ir::Expr> items;
      for (ir::Expr e : *list) items.emplace_back(binding_(e));
      return literals_.of(ir::Arg(std::move(items)), p);
    }
    if (auto n = number_of(a, binding_)) return literals_.of(eager::literal(*n), p);
    return literals_.of(a, p);
  }

 private:
  Tensor tensor(ir::Value v) const { return v.index > 0 ? value_(v.index - 1) : Tensor(); }

  const Binding& binding_;
  std::function<Tensor(Number)> value_;
  std::forward_list<Tensor> tensors_;
  std::forward_list<std::vector<Tensor>> lists_;
  std::forward_list<std::vector<std::optional<Tensor>>> optionals_;
  eager::Literals literals_;
};

}  // namespace

std::vector<Tensor> run_event(const Event& e, const Binding& binding, const std::function<Tensor(Number)>& value) {
  // A view was of a value, which is row-major; here it may lie as eager let it.
  EventCall call(binding, [&](Number n) { return e.row->view ? value(n).contiguous() : value(n); });
  std::vector<CallArg> args;
  for (size_t k = 0; k < e.args.size(); ++k) args.push_back(call.argument(e.args[k], e.row->schema.params[k]));
  eager::Results results;
  eager::call_functional(eager::op(*e.row), args, results);
  BRASA_ASSERT(results.size() == e.count, e.row->name(), " gave ", results.size(), " results");
  return results.take();
}

}  // namespace brasa::capture
