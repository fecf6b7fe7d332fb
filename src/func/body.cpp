#include "func/body.h"

#include <algorithm>

#include <brasa/autograd.h>

#include "capture/matching.h"
#include "capture/names.h"
#include "func/flow_rows.h"
#include "ir/special.h"
#include "ops/builder.h"
#include "runtime/device.h"
#include "support/error.h"
#include "support/hash.h"
#include "support/lazy.h"
#include "tensor/dispatch.h"
#include "tensor/recorded_call.h"
#include "tensor/tensor_impl.h"
#include "tensor/views.h"
#include "transforms/derived.h"

namespace brasa::func {

using capture::Event;
using capture::Number;
using ir::Expr;

bool RecordedBody::operator==(const RecordedBody& other) const {
  auto same = [](const Event& a, const Event& b) { return a.row == b.row && a.count == b.count && a.args == b.args; };
  return outputs == other.outputs &&
         std::equal(events.begin(), events.end(), other.events.begin(), other.events.end(), same);
}

size_t RecordedBody::hash() const {
  size_t out = outputs.size();
  for (const Event& e : events) {
    out = out * 31 + std::hash<const void*>()(e.row);
    for (const ir::Arg& a : e.args) out = out * 31 + a.hash();
  }
  return out;
}

size_t FlowArguments::captured(const Tensor& t) {
  auto it = std::find_if(operands.begin() + static_cast<std::ptrdiff_t>(given), operands.end(),
                         [&](const Tensor& known) { return known.is_same(t); });
  if (it == operands.end()) it = operands.insert(it, t);
  return static_cast<size_t>(it - operands.begin());
}

BodyRecorder::BodyRecorder(FlowArguments& arguments, std::string what)
    : arguments_(arguments), what_(std::move(what)), grad_mode_(GradMode::is_enabled()) {}

Tensor BodyRecorder::operand(size_t place, Part part) {
  const Tensor& t = arguments_.operands[place];
  const TensorImpl& impl = *checked_impl(t);
  if (!device_ || device_->on_host()) device_ = &impl.device();
  ir::Type type{impl.dtype, {impl.sizes.begin() + (part == Part::Item), impl.sizes.end()}, impl.weak};
  Number n = input(place, std::move(type));
  // Gradients flow through what a step leaves, whatever the first one begins with.
  flows_[n] = t.requires_grad() || (part == Part::State && grad_mode_ && is_floating(impl.dtype));
  varies_.resize(types_.size());
  varies_[n] = part != Part::Whole;
  const ir::Type& kept = types_[n];
  Sizes sizes;
  for (Expr e : kept.shape) sizes.push_back(e.constant());
  Tensor out = hold_new(n, RowMajor(sizes, kept.dtype), kept.dtype, impl.device());
  stand_ins_ = held_.size();
  if (flows_[n]) out.requires_grad_();
  return out;
}

void BodyRecorder::materialise(const char* reason) {
  fail(str(what_, " is recorded, and ", reason, " needs a value, which is known only when it runs"));
}

Number BodyRecorder::input(size_t place, ir::Type type) {
  Event e;
  e.args.push_back(ir::Arg(static_cast<int64_t>(place)));
  e.first = static_cast<Number>(types_.size());
  body_.events.push_back(std::move(e));
  types_.push_back(std::move(type));
  flows_.push_back(false);
  return static_cast<Number>(types_.size() - 1);
}

// A tensor that the function reads although it was not given.
Number BodyRecorder::outside(const Tensor& t) {
  size_t place = arguments_.captured(t);
  own_.resize(std::max(own_.size(), place + 1), capture::kNoNumber);
  if (own_[place] == capture::kNoNumber) {
    const TensorImpl& impl = *impl_of(t);
    own_[place] = input(place, {impl.dtype, {impl.sizes.begin(), impl.sizes.end()}, impl.weak});
    flows_.back() = t.requires_grad();
  }
  return own_[place];
}

void BodyRecorder::place(std::span<const CallArg> args) {
  runtime::Device& device = eager::common_device(eager::CallArgs(args.data(), args.size()));
  BRASA_CHECK(!device_ || device_ == &device || device_->on_host() || device.on_host(), what_,
              " computes on two devices, ", device_->str(), " and ", device.str());
  device_ = &device;
}

bool BodyRecorder::may_hold(const Tensor& target, Number&) {
  fail(str(what_, " writes into ", target,
           ", a tensor from outside (or one of `empty`), in place: give the new value as a result instead"));
}
capture::Held& BodyRecorder::hold_outside(const Tensor&) { fail_internal(what_ + " holds no memory from outside"); }

void BodyRecorder::changes(const capture::Held& held) {
  BRASA_CHECK(static_cast<size_t>(&held - held_.data()) >= stand_ins_, what_,
              " writes into one of its arguments in place: give the new value as a result instead");
}

Tensor BodyRecorder::make_recorded(Number n) {
  Sizes sizes;
  for (Expr e : types_[n].shape) sizes.push_back(e.constant());
  return hold_new(n, RowMajor(sizes, types_[n].dtype), types_[n].dtype, device_ ? *device_ : runtime::host());
}

// The derivative will be that of the body, which has to know where none flows: at what was detached or made without gradients.
Number BodyRecorder::seen(const Tensor& t, Number n) {
  if (!grad_mode_ || !flows_[n] || t.requires_grad() || !is_floating(t.scalar_type())) return n;
  static constinit Lazy<const ops::Row&> detach([]() -> auto& { return ops::at("aten::detach"); });
  if (auto it = detached_.find(n); it != detached_.end()) return it->second;
  Event e;
  e.row = &*detach;
  e.args.push_back(ir::Arg(capture::numbered(n)));
  return detached_[n] = add(std::move(e));
}

Number BodyRecorder::record(const ops::Row& row, std::span<const CallArg> args, const Operands& operands, bool view,
                            uint32_t& count) {
  BRASA_CHECK(!row.random || !eager::draws(row, eager::CallArgs(args.data(), args.size())), what_, ": ", row.name(),
              " draws random numbers; draw them outside, and pass them in or read them there");
  Event e;
  e.row = &row;
  e.args = capture::Numbered{row, args, operands, view}.node_args();
  Number first = add(std::move(e), args);
  count = body_.events.back().count;
  bool flows =
      std::any_of(operands.begin(), operands.end(), [&](ir::Value v) { return v.index > 0 && flows_[v.index - 1]; });
  std::fill(flows_.begin() + first, flows_.end(), flows && !row.no_gradient);
  return first;
}

Number BodyRecorder::record_put(const ops::Row& view, int result, std::span<const CallArg> args,
                                const Operands& operands, Number value) {
  Event e;
  e.row = &transforms::put_row(view, result);
  e.args = capture::Numbered{view, args, operands, true}.node_args();
  e.args.push_back(ir::Arg(capture::numbered(value)));
  bool flows = flows_[value] || flows_[operands[0].index - 1];
  Number n = add(std::move(e), args);
  flows_[n] = flows;
  return n;
}

namespace {

// The types of results of calls that this thread has recorded: functions are recorded again and again, and do the same each time.
class KnownTypes {
 public:
  const std::vector<ir::Type>& of(const Event& e, const std::vector<ir::Type>& types) {
    size_t hash = std::hash<const void*>()(e.row);
    for (const ir::Arg& a : e.args) hash = hash * 31 + a.hash();
    auto [begin, end] = known_.equal_range(hash);
    auto it = std::find_if(begin, end, [&](const auto& item) { return agrees(item.second, e, types); });
    if (it != end) return it->second.results;
    constexpr size_t kMost = 4096;
    if (known_.size() >= kMost) known_.clear();
    Known made{e.row, e.args, {}, {}};
    capture::each_operand(e, [&](Number n) { made.operands.push_back(types[n]); });
    made.results = inferred(e, types);
    return known_.emplace(hash, std::move(made))->second.results;
  }

 private:
  struct Known {
    const ops::Row* row;
    ir::Args args;
    std::vector<ir::Type> operands, results;
  };
  static bool agrees(const Known& known, const Event& e, const std::vector<ir::Type>& types) {
    if (known.row != e.row || !(known.args == e.args)) return false;
    bool same = true;
    size_t k = 0;
    capture::each_operand(e, [&](Number n) { same = same && known.operands[k++] == types[n]; });
    return same;
  }
  static std::vector<ir::Type> inferred(const Event& e, const std::vector<ir::Type>& types) {
    ir::Graph side;
    ir::Facts facts;
    std::unordered_map<uint32_t, ir::Value> values;
    auto mapped = [&](ir::Value v) {
      if (v.index == 0) return ir::Value{};
      auto [it, fresh] = values.try_emplace(v.index);
      if (fresh) it->second = side.add_input(types.at(v.index - 1));
      return it->second;
    };
    return ops::result_types(*e.row, capture::mapped_args(e, mapped), facts);
  }

  std::unordered_multimap<size_t, Known> known_;
};

}  // namespace

Number BodyRecorder::add(Event e, std::span<const CallArg> args) {
  thread_local KnownTypes known;
  const std::vector<ir::Type>& types = known.of(e, types_);
  e.first = static_cast<Number>(types_.size());
  e.count = static_cast<uint32_t>(types.size());
  leave_numbers_out(e, args);
  types_.insert(types_.end(), types.begin(), types.end());
  flows_.resize(types_.size());
  body_.events.push_back(std::move(e));
  return body_.events.back().first;
}

std::optional<Expr> BodyRecorder::size_of(const Tensor& t, int64_t dim) {
  const TensorImpl& impl = *impl_of(t);
  if (impl.storage->recorder() != this) return outer_->size_of(t, dim);
  if (eager::view_of(impl)) return std::nullopt;
  Number n = number_of(t);
  auto is_n = [&](const Event& e) { return e.first == n && !e.row; };
  auto at = std::find_if(body_.events.begin(), body_.events.end(), is_n);
  if (at == body_.events.end()) return std::nullopt;
  const Tensor& operand = arguments_.operands[static_cast<size_t>(at->args[0].get<Expr>().constant())];
  return outer_->size_of(operand, dim + operand.dim() - t.dim());  // one more where it goes along the first
}

// See capture::Generaliser: these are the numbers in which calls may differ.
void BodyRecorder::leave_numbers_out(Event& e, std::span<const CallArg> args) {
  auto size = [&](Expr v, size_t i, size_t item) {
    arguments_.sizes.push_back(v.constant());
    arguments_.names.push_back(i < args.size() ? capture::name_of(args[i], item) : 0);
    return Expr::size(static_cast<uint32_t>(arguments_.sizes.size() - 1));
  };
  for (size_t i = 0; i < e.args.size(); ++i) {
    const ir::Param& p = e.row->schema.params[i];
    ir::Arg& a = e.args[i];
    if (p.use == ir::NumberUse::Size) {
      if (auto* one = std::get_if<Expr>(&a.variant())) *one = size(*one, i, 0);
      if (auto* list = std::get_if<std::vector<Expr>>(&a.variant()))
        for (size_t k = 0; k < list->size(); ++k) (*list)[k] = size((*list)[k], i, k);
    } else if (p.use == ir::NumberUse::Input && !p.list) {
      std::optional<Scalar> v = capture::number_of(a, {});
      if (!v || (!v->isComplex() && ir::is_special(p.special, v->toDouble()))) continue;
      arguments_.numbers.push_back(*v);
      a = ir::Arg(capture::argument(static_cast<uint32_t>(arguments_.numbers.size() - 1)));
    }
  }
}

// ---- Values that the recording around has to know.

// Those events that the value is made of, which begin with what `arguments` gets.
RecordedBody BodyRecorder::part_for(Number n, FlowArguments& arguments) const {
  std::vector<bool> needed(types_.size());
  needed[n] = true;
  auto is_needed = [&](const Event& e) {
    auto first = needed.begin() + e.first;
    return std::find(first, first + e.count, true) != first + e.count;
  };
  for (size_t i = body_.events.size(); i-- > 0;)
    if (const Event& e = body_.events[i]; e.row && is_needed(e))
      capture::each_operand(e, [&](Number operand) { needed[operand] = true; });
  RecordedBody out;
  std::vector<Number> moved(types_.size(), capture::kNoNumber);
  Number next = 0;
  for (const Event& e : body_.events) {
    if (!is_needed(e)) continue;
    BRASA_CHECK(e.row || e.first >= varies_.size() || !varies_[e.first], what_,
                ": a size that depends on values is known before the loop only where no step changes these values");
    Event part = e;
    if (!e.row) {
      auto place = static_cast<size_t>(e.args[0].get<Expr>().constant());
      part.args[0] = ir::Arg(static_cast<int64_t>(arguments.captured(arguments_.operands[place])));
    } else {
      part.args = capture::mapped_args(e, [&](ir::Value v) {
        return v.index == 0 || capture::is_argument(v) ? v : capture::numbered(moved[v.index - 1]);
      });
    }
    part.first = next;
    for (uint32_t k = 0; k < e.count; ++k) moved[e.first + k] = next++;
    out.events.push_back(std::move(part));
  }
  out.outputs.push_back(moved[n]);
  return out;
}

Tensor BodyRecorder::computed_before(const Tensor& t) {
  FlowArguments arguments;
  arguments.sizes = arguments_.sizes;
  arguments.names = arguments_.names;
  arguments.numbers = arguments_.numbers;
  RecordedBody part = part_for(number_of(t), arguments);
  auto build = [](const Flow&, const std::vector<ir::Value>& operands, const std::vector<ops::BodyFunction>& bodies) {
    return bodies[0](operands);
  };
  Scope around(around_);
  KnownSizes::Scope known(outer_);
  NoGradGuard no_grad;
  return func::call({"part", build, {}, {std::move(part)}, 0, 0}, arguments)[0];
}

std::optional<std::vector<Recorder::Integer>> BodyRecorder::integers(const Tensor& t, const std::string& reader) {
  if (!outer_) return std::nullopt;
  Tensor before = impl_of(t)->storage->recorder() == this ? computed_before(t) : t;
  Scope around(around_);
  KnownSizes::Scope known(outer_);
  return around_->integers(before, reader);
}

std::optional<int64_t> BodyRecorder::item(const Tensor& t) {
  if (!outer_) return std::nullopt;
  Tensor before = impl_of(t)->storage->recorder() == this ? computed_before(t) : t;
  Scope around(around_);
  KnownSizes::Scope known(outer_);
  return around_->item(before);
}

RecordedBody BodyRecorder::finished(const std::vector<Tensor>& results) {
  for (const Tensor& t : results) {
    BRASA_CHECK(t.defined(), what_, " gives an undefined tensor");
    Number n = number_of(t);
    body_.outputs.push_back(seen(t, n));
  }
  return std::move(body_);
}

}  // namespace brasa::func
