#include "func/level.h"

#include <algorithm>
#include <forward_list>

#include "ops/table.h"
#include "support/error.h"
#include "tensor/dispatch.h"
#include "tensor/geometry.h"
#include "tensor/recorded_call.h"
#include "tensor/tensor_impl.h"
#include "transforms/derived.h"

namespace brasa::func {

using capture::Number;

namespace {

// A call's arguments with other tensors in place of its own.
class Replaced {
 public:
  Replaced(std::span<const CallArg> args, std::span<const Tensor* const> tensors, bool view)
      : args_(args.begin(), args.end()) {
    size_t k = 0;
    for (size_t i = 0; i < args_.size(); ++i) {
      CallArg& a = args_[i];
      if (a.kind == CallArg::Kind::Tensor || (view && i == 0)) {
        a = tensors[k] ? CallArg(*tensors[k]) : CallArg();
        ++k;
      } else if (a.kind == CallArg::Kind::Tensors) {
        auto& items = lists_.emplace_front();
        for (uint32_t j = 0; j < a.size; ++j, ++k) items.push_back(tensors[k] ? *tensors[k] : Tensor());
        a = CallArg(items);
      } else if (a.kind == CallArg::Kind::OptionalTensors) {
        auto& items = optionals_.emplace_front();
        for (uint32_t j = 0; j < a.size; ++j, ++k)
          items.push_back(tensors[k] ? std::optional<Tensor>(*tensors[k]) : std::nullopt);
        a = CallArg(ArrayRef<std::optional<Tensor>>(items));
      }
    }
  }
  const std::vector<CallArg>& args() const { return args_; }

 private:
  std::vector<CallArg> args_;
  std::forward_list<std::vector<Tensor>> lists_;
  std::forward_list<std::vector<std::optional<Tensor>>> optionals_;
};

// The number of the operand that is argument `at`, which is a tensor.
size_t operand_at(std::span<const CallArg> args, size_t at) {
  size_t n = 0;
  for (const CallArg& a : args.first(at)) {
    if (a.kind == CallArg::Kind::Tensor) ++n;
    if (a.kind == CallArg::Kind::Tensors || a.kind == CallArg::Kind::OptionalTensors) n += a.size;
  }
  return n;
}

}  // namespace

Tensor Level::wrap(Lift lift) {
  values_.push_back(std::move(lift));
  return make_recorded(static_cast<Number>(values_.size() - 1));
}

Lift Level::unwrap(const Tensor& t) {
  Scope scope(*this);  // a view is read now
  return values_[seen(t, number_of(t))];
}

void Level::detached(const Tensor& t) {
  detached_.emplace(impl_of(t), t);
  if (const auto& view = impl_of(t)->view) detached_.emplace(impl_of(view->base), view->base);
}

// What is written through a detached tensor may have derivatives of its own.
void Level::write(const Tensor& target, const Tensor& value) {
  detached_.erase(impl_of(target));
  Functional::write(target, value);
}

Tensor Level::snapshot(const Tensor& t) {
  Tensor copy = Functional::snapshot(t);
  if (is_detached(t)) detached(copy);
  return copy;
}

bool Level::is_detached(const Tensor& t) const {
  if (detached_.empty()) return false;
  const TensorImpl* impl = impl_of(t);
  return detached_.contains(impl) || (impl->view && detached_.contains(impl_of(impl->view->base)));
}

// A detached tensor looks at memory whose value may have derivatives.
Number Level::seen(const Tensor& t, Number n) {
  if (!is_detached(t)) return n;
  Recorder::Scope around(around_.recorder);
  values_.push_back(without_derivatives(values_[n]));
  return static_cast<Number>(values_.size() - 1);
}

Tensor Level::make_recorded(Number n) {
  const TensorImpl& value = *impl_of(values_[n].value);
  return hold_new(n, RowMajor(inner_sizes(values_[n]), value.dtype), value.dtype, value.device());
}

void Level::materialise(const char* reason) {
  fail(str(name(), ": ", reason, " needs a value, and inside the function a tensor stands for more than one"));
}

Tensor Level::known(const Tensor& t) {
  Lift lift = unwrap(t);
  return lift.lifted ? Tensor() : lift.value;
}

Number Level::outside(const Tensor& t) {
  values_.push_back({t, {}, false});
  return static_cast<Number>(values_.size() - 1);
}

Number Level::record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                     uint32_t& count) {
  Recorder::Scope around(around_.recorder);
  AutoGradMode mode(around_.grad_mode);
  size_t key = operands.size();
  if (row.random) {
    size_t at = eager::generator_of(row), operand = operand_at(args, at);
    const Storage* its = impl_of(values_[operands[operand].index - 1].value)->storage.get();
    // Backward has the key of forward. Where that is not the function's, its numbers are the same for all calls.
    bool own = !transforms::is_backward(row) || keys_.contains(its);
    if (own && eager::draws(row, eager::CallArgs(args.data(), args.size()))) {
      keys_.insert(its);
      key = operand;
    }
  }
  const runtime::Device& device = eager::common_device(eager::CallArgs(args.data(), args.size()));
  std::vector<const Tensor*> tensors;
  std::vector<const Lift*> lifts;
  bool any = false;
  // Copies, because what is called may make values here.
  std::forward_list<Lift> own;
  for (ir::Value v : operands) {
    if (v.index == 0) {
      tensors.push_back(nullptr);
      continue;
    }
    Lift held = values_[v.index - 1];
    const Lift& lift = own.emplace_front(tensors.size() == key ? drawn(row, held.value, device) : std::move(held));
    tensors.push_back(&lift.value);
    lifts.push_back(&lift);
    any = any || lift.lifted;
  }
  Replaced replaced(args, tensors, view);
  std::vector<Lift> results;
  if (any) {
    results = transformed(row, replaced.args(), lifts);
  } else {
    for (Tensor& t : eager::call_list(eager::op(row), replaced.args())) results.push_back({std::move(t), {}, false});
  }
  auto first = static_cast<Number>(values_.size());
  count = static_cast<uint32_t>(results.size());
  values_.insert(values_.end(), results.begin(), results.end());
  return first;
}

Number Level::record_put(const ops::Row& view, int result, std::span<const CallArg> args, const Operands& operands,
                         Number value) {
  // The value is the last parameter, behind those that the call leaves out.
  const ops::Row& row = transforms::put_row(view, result);
  std::vector<CallArg> all(args.begin(), args.end());
  eager::Literals defaults;
  defaults.fill_up(all, row, row.schema.params.size() - 1);
  const Tensor placeholder = values_[value].value;
  all.push_back(CallArg(placeholder));
  Operands with_value = operands;
  with_value.push_back(capture::numbered(value));
  uint32_t count = 0;
  return record(row, all, with_value, true, count);
}

bool Level::may_hold(const Tensor& target, Number& value) {
  const Lift lift = values_[value];
  BRASA_CHECK(!lift.lifted, name(), ": the function writes ", lift.value, " into ", target,
              ", a tensor from outside, in place: return the value instead");
  Recorder::Scope around(around_.recorder);
  NoGradGuard guard;
  Tensor(target).copy_(lift.value);
  return false;
}

capture::Held& Level::hold_outside(const Tensor&) { fail_internal(str(name(), " holds no memory from outside")); }

}  // namespace brasa::func
